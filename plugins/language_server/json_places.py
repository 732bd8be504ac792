"""Where a cursor stands in a JSON that is being typed."""

import re
from itertools import pairwise

from advisor.record import record

from .places import ITEM, Spot

TOKEN = re.compile(r'"(?P<text>(?:[^"\\\n]|\\.)*)(?P<end>"?)|(?P<mark>[{}\[\],:])|(?P<bare>[^\s{}\[\],:"]+)')


@record(eq=False, frozen=False)
class Inside:
    """A mapping or a list that is open at the cursor, and its key that was read last."""

    mark: str
    key: str = ""
    is_value: bool = False


def spot_in_json(text: str, offset: int) -> Spot | None:
    """The place at a character; None where nothing is completed."""
    open_: list[Inside] = []
    typed, quoted = "", False
    for token in TOKEN.finditer(text, 0, offset):
        typed, quoted = "", False
        mark = token["mark"]
        if mark in {"{", "["}:
            open_.append(Inside(mark))
        elif mark in {"}", "]"} and open_:
            open_.pop()
        elif mark and open_:
            open_[-1].is_value = mark == ":"
        elif not mark:
            word = token["text"] if token["text"] is not None else token["bare"]
            if token.end() == offset and not token["end"]:
                typed, quoted = word, token["bare"] is None
            elif open_ and not open_[-1].is_value:
                open_[-1].key = word
    if not open_:
        return None
    here, path = open_[-1], _path(open_)
    if here.mark == "[":
        return Spot("value", path, typed, quoted=quoted)
    if here.is_value:
        return Spot("value", (*path, here.key), typed, quoted=quoted)
    return Spot("key", path, typed, _siblings(text, len(open_), path), quoted)


def _path(open_: list[Inside]) -> tuple[str, ...]:
    """The keys around the innermost of what is open, ``ITEM`` for a list."""
    path: list[str] = []
    for outer, inner in pairwise(open_):
        path += [outer.key] if outer.mark == "{" else []
        path += [ITEM] if inner.mark == "[" else []
    return tuple(path)


def _siblings(text: str, depth: int, path: tuple[str, ...]) -> frozenset[str]:
    """The keys of the mappings at that depth whose path is the same."""
    found: set[str] = set()
    open_: list[Inside] = []
    for token in TOKEN.finditer(text):
        mark = token["mark"]
        if mark in {"{", "["}:
            open_.append(Inside(mark))
        elif mark in {"}", "]"} and open_:
            open_.pop()
        elif mark and open_:
            open_[-1].is_value = mark == ":"
            if mark == ":" and len(open_) == depth and _path(open_) == path:
                found.add(open_[-1].key)
        elif not mark and open_ and not open_[-1].is_value:
            open_[-1].key = token["text"] or ""
    return frozenset(found)
