"""A file of rows -> the first of them, and how many there are."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from advisor.errors import InputError
from advisor.record import record
from advisor.util import is_list, is_mapping

FIRST = 200
"""Rows that are looked at."""
MOST_BYTES = 256 << 20
"""Of a JSON array, which is read whole."""
PIECE = 1 << 20
LINES = (".jsonl", ".ndjson")
STATE = "state what its rows are with --rows-as turns, pairs, instructions or text"


@record(eq=False)
class Rows:
    """The first rows of a file, each with the number of its line or item, and how many there are in all."""

    path: str
    first: tuple[Mapping[str, Any], ...]
    count: int


def rows_in(path: str) -> Rows:
    """The rows of a ``.jsonl`` or ``.json``. ``InputError`` with the line where one is no JSON object."""
    if not os.path.isfile(path):
        raise InputError("is no file of rows that can be read here", path, remedy=STATE)
    if not path.lower().endswith((*LINES, ".json")):
        raise InputError("is neither JSON lines nor JSON", path, remedy=STATE)
    try:
        return _whole(path) if path.lower().endswith(".json") and _starts_a_list(path) else _lines(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path, remedy="check the file") from error


def _starts_a_list(path: str) -> bool:
    with open(path, encoding="utf-8-sig") as file:
        return file.read(PIECE).lstrip().startswith("[")


def _whole(path: str) -> Rows:
    if os.path.getsize(path) > MOST_BYTES:
        raise InputError(f"is a JSON array of more than {MOST_BYTES >> 20} MiB", path, remedy="write it as JSON lines")
    with open(path, encoding="utf-8-sig") as file:
        try:
            found: Any = json.load(file)
        except (ValueError, RecursionError) as error:
            raise InputError(f"is no JSON: {error}", path, getattr(error, "lineno", 0), remedy="check it") from error
    items = found if is_list(found) else []
    return _checked(path, [_object(path, at, item) for at, item in enumerate(items[:FIRST], 1)], len(items))


def _lines(path: str) -> Rows:
    with open(path, encoding="utf-8-sig") as file:
        first = [_row(path, at, line) for at, line in zip(range(1, FIRST + 1), file, strict=False) if line.strip()]
    return _checked(path, first, sum(_newlines(path)))


def _newlines(path: str) -> Iterator[int]:
    """Lines of a file, by pieces; the last may have no end."""
    last = b"\n"
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            yield piece.count(b"\n")
            last = piece[-1:]
    yield int(last != b"\n")


def _row(path: str, line: int, text: str) -> Mapping[str, Any]:
    try:
        return _object(path, line, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError("is no JSON object", path, line, remedy="one JSON object a line") from error


def _object(path: str, line: int, value: Any) -> Mapping[str, Any]:
    if not is_mapping(value):
        raise InputError("is no JSON object", path, line, remedy="a row is a JSON object with its columns")
    return value


def _checked(path: str, first: list[Mapping[str, Any]], count: int) -> Rows:
    if not first:
        raise InputError("has no rows", path, remedy="name the file that has them")
    return Rows(path, tuple(first), count)
