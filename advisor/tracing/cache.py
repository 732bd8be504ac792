"""Where traces are kept: one JSON file for each config, set of facts and version of transformers."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from advisor.models.architecture import Architecture
from advisor.models.traced import Facts
from advisor.tracing.folder import folder
from advisor.tracing.serialize import decoded, encoded

FORMAT = 1
"""Of the files; others are skipped."""


def path_for(config: Mapping[str, object], facts: Facts, version: str) -> Path:
    """The file of one trace: the digest of its config, then that of all that it depends on."""
    model = canonical(config)
    whole = canonical({"config": config, "facts": asdict(facts), "transformers": version, "format": FORMAT})
    return folder() / f"{digest(model)[:16]}-{digest(whole)}.json"


def canonical(value: Mapping[str, object]) -> str:
    """The same text for the same values, however they were written."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def digest(text: str) -> str:
    """SHA-256 as text."""
    return sha256(text.encode()).hexdigest()


def kept(config: Mapping[str, object]) -> list[Architecture]:
    """Every readable trace of a config, the latest first."""
    files = folder().glob(f"{digest(canonical(config))[:16]}-*.json")
    read_ones = map(read, sorted(files, key=_written_at, reverse=True))
    return [found for found in read_ones if found is not None]


def _written_at(file: Path) -> float:
    """When a file was written; 0 if it is gone."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0


def read(file: Path) -> Architecture | None:
    """The trace in a file; None if the file cannot be read, is damaged, or of another format."""
    try:
        value = json.loads(file.read_bytes())
        return decoded(value["model"]) if value["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write(file: Path, model: Architecture) -> None:
    """Writes a trace at once or not at all. A cache that cannot be written is no reason to stop."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"format": FORMAT, "model": encoded(model)}), encoding="utf-8")
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
