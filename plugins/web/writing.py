"""Menus and sliders -> a config from a blank page, through ``advisor.new``."""

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from advisor.new import Request, drafted
from advisor.new import ways as all_ways
from advisor.new.methods import method_named
from advisor.record import replace
from advisor.session import RunOptions

from .asking import CONFIG, MODEL
from .showing import ways_table


@contextmanager
def wanted(request: str) -> Generator[Request]:
    """What the menus say; a ``config.json`` of the page lies in a file meanwhile, where the advisor reads it."""
    said: dict[str, Any] = json.loads(request)
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, MODEL)
        if text := said["files"].get(MODEL, ""):
            own.write_text(text, encoding="utf-8")
        yield Request(
            model=said["model"],
            method=method_named(said["method"]),
            sequence_len=int(said["length"]),
            tokens=float(said["tokens"]),
            file=CONFIG,
            options=RunOptions(gpus=said["gpus"], model_config=str(own) if text else None, isolated=True),
        )


def draft(request: str) -> dict[str, Any]:
    """The files that the search begins with. ``InputError`` where something must be stated."""
    with wanted(request) as asked:
        return {"files": dict(drafted(asked, asked.wanted or "lora"))}


def ways(request: str) -> dict[str, Any]:
    """The three ways whatever the method, and the one to take. ``InputError`` where something must be stated."""
    with wanted(request) as asked:
        found = all_ways(asked if asked.method == "dpo" else replace(asked, method="auto"))
    files = {way.training: dict(way.files) for way in found.ways if way.fits}
    return {
        "html": ways_table(found),
        "files": files,
        "chosen": found.chosen.training if found.chosen is not None else None,
    }
