"""The built-in catalogue: configs of published models by Hugging Face id, one JSON line a model.

A line has ``id``; ``aliases``, ids with the same architecture; ``config``, the config.json keys that counting
reads (flags at their class default left out); ``parameters``, the exact count; ``towers`` and ``experts``,
parts of it; ``positions``, which of the ids have other ``max_position_embeddings``, by their number; ``stored``, which
of the ids are released quantized, by method; ``bf16``, copies of those in bf16;
``source``, how the count was obtained and where the dimensions stand in public.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any


def lookup(name: str) -> dict[str, Any] | None:
    """The entry of a model by id or alias, in the given case first, then in any; None if there is none.

    Finds the name in the bytes and parses that line alone, which is what keeps a lookup under a millisecond.
    """
    data = catalogue()
    return _find(data, data, name) or _find(data, _lowered(), name.lower())


def _find(data: bytes, haystack: bytes, name: str) -> dict[str, Any] | None:
    needle = json.dumps(name).encode()
    at = haystack.find(needle)
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        entry: dict[str, Any] = json.loads(data[start:end])
        if name.lower() in (known.lower() for known in names(entry)):
            return entry
        at = haystack.find(needle, end)
    return None


def names(entry: dict[str, Any]) -> list[str]:
    """All ids of an entry, its own first."""
    return [entry["id"], *entry.get("aliases", ())]


def by_last_part(name: str) -> dict[str, Any] | None:
    """The entry that alone has an id ending in ``/name``; None where there is none, or several."""
    needle = f'/{name.lower()}"'.encode()
    lines = {_lowered().count(b"\n", 0, at) for at in _places(_lowered(), needle)}
    found = [json.loads(catalogue().splitlines()[line]) for line in lines]
    known = [one for one in found if any(each.lower().endswith("/" + name.lower()) for each in names(one))]
    return known[0] if len(known) == 1 else None


def _places(data: bytes, needle: bytes) -> Iterator[int]:
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + 1)


def entries() -> Iterator[dict[str, Any]]:
    """Every entry, in the order of the file."""
    yield from map(json.loads, catalogue().splitlines())


def catalogue_ids() -> list[str]:
    """Every id and alias that ``resolve`` knows without network or files."""
    return [name for entry in entries() for name in names(entry)]


@cache
def catalogue() -> bytes:
    """The file."""
    return Path(__file__).with_name("catalogue.jsonl").read_bytes()


@cache
def _lowered() -> bytes:
    return catalogue().lower()
