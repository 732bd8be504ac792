"""Why a line of a config is as it is: ``comments.json``, which also has the order of the lines."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

COMMENTS = Path(__file__).with_name("comments.json")


@cache
def _table() -> Any:
    return json.loads(COMMENTS.read_text(encoding="utf-8"))


@cache
def groups() -> Sequence[Sequence[str]]:
    """The keys at the top, a list for each block."""
    return [[key for key in group if "." not in key and "[" not in key] for group in _table()["groups"]]


@cache
def _by_path() -> Mapping[str, Mapping[str, str]]:
    return {path: said for group in _table()["groups"] for path, said in group.items()}


def comment(path: str, tags: Collection[str], facts: Mapping[str, str]) -> str:
    """What is said of the line at ``path`` (``datasets[].type``) where ``tags`` hold; ``facts`` fill it in."""
    said = _by_path().get(path) or _by_path().get(_any_of(path)) or {"": _table()["rest"]}
    chosen = next((text for words, text in said.items() if all(word in tags for word in words.split())), "")
    return chosen.format_map(facts)


def _any_of(path: str) -> str:
    """The path that stands for all keys of a mapping."""
    return f"{path.rpartition('.')[0]}.*"
