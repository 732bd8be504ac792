"""Where Hugging Face keeps configs: its cache folder, read directly, and the hub, through huggingface_hub."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from advisor.progress import doing
from advisor.util import cache_folder

FOLDER = "models--"
"""How folders of the cache begin."""


def cached_configs(name: str) -> Iterator[Path]:
    """Config files of a model in the Hugging Face cache: the revision that ``main`` points to, else any."""
    folder = FOLDER + name.replace("/", "--")
    for cache in _cache_folders():
        model = cache / folder
        if not os.path.isdir(model):
            continue
        revision = _text(model / "refs" / "main")
        found = [model / "snapshots" / revision / "config.json"] if revision else []
        found += sorted(model.glob("snapshots/*/config.json"))
        yield from (path for path in dict.fromkeys(found) if path.is_file())


def _cache_folders() -> list[Path]:
    """Folders that huggingface_hub would look in, the most specific setting first."""
    given = [os.environ.get(key) for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    folders = [Path(value).expanduser() for value in given if value]
    if home := os.environ.get("HF_HOME"):
        folders.append(Path(home).expanduser() / "hub")
    return [*folders, cache_folder() / "huggingface" / "hub"]


def from_hub(name: str) -> dict[str, Any]:
    """The ``config.json`` of a published model, fetched or from the cache. Raises whatever stands in the way."""
    with doing(f"fetching the config of {name}"):
        huggingface_hub: Any = import_module("huggingface_hub")
        path = Path(huggingface_hub.hf_hub_download(name, "config.json"))
        return json.loads(path.read_text(encoding="utf-8"))


def names_in(path: str) -> Iterator[str]:
    """The ids that a path may hold: of a folder of the cache (``models--ORG--NAME``), its last two parts, its last.

    Of what is no path (``ORG/NAME``) none: a copy by somebody else may be another model.
    """
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    if len(parts) < 2 or (len(parts) == 2 and not path.startswith(("/", ".", "~"))):
        return
    for part in parts:
        if part.startswith(FOLDER) and "--" in (name := part.removeprefix(FOLDER)):
            yield name.replace("--", "/", 1)
    yield "/".join(parts[-2:])
    yield parts[-1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
