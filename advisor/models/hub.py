"""Where Hugging Face keeps configs: its cache folder, read directly, and the hub, through transformers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from advisor.progress import doing
from advisor.util import cache_folder


def cached_configs(name: str) -> Iterator[Path]:
    """Config files of a model in the Hugging Face cache: the revision that ``main`` points to, else any."""
    folder = "models--" + name.replace("/", "--")
    for cache in cache_folders():
        model = cache / folder
        if not os.path.isdir(model):
            continue
        revision = _text(model / "refs" / "main")
        found = [model / "snapshots" / revision / "config.json"] if revision else []
        found += sorted(model.glob("snapshots/*/config.json"))
        yield from (path for path in dict.fromkeys(found) if path.is_file())


def cache_folders() -> list[Path]:
    """Folders that huggingface_hub would look in, the most specific setting first."""
    given = [os.environ.get(key) for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    folders = [Path(value).expanduser() for value in given if value]
    if home := os.environ.get("HF_HOME"):
        folders.append(Path(home).expanduser() / "hub")
    return [*folders, cache_folder() / "huggingface" / "hub"]


def from_hub(name: str) -> dict[str, Any]:
    """The config as transformers downloads it. Raises whatever stands in the way."""
    with doing(f"fetching the config of {name}"):
        transformers: Any = import_module("transformers")
        # Said outright: left open, transformers asks on the terminal whether to run the repository's code.
        return dict(transformers.AutoConfig.from_pretrained(name, trust_remote_code=False).to_dict())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
