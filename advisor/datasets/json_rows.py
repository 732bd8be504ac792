"""JSON lines, and one JSON array -> rows."""

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO

from advisor.datasets.rows import FIRST, Row, Rows, gathered
from advisor.errors import InputError
from advisor.util import is_list, is_mapping

MOST_CHARACTERS = 256 << 20
"""Of a JSON array, which is read whole."""
OBJECT = "a row is a JSON object with its columns"
BOM = b"\xef\xbb\xbf"
PIECE = 1 << 16
SPACE = re.compile(r"[\s,]*")
PARSE = json.JSONDecoder().raw_decode


def starts_with(file: TextIO) -> str:
    """The first character that is none of white space; the file is then at its start again."""
    found = ""
    while not found and (piece := file.read(PIECE)):
        found = piece.lstrip()[:1]
    file.seek(0)
    return found


def array_rows(path: str, file: TextIO) -> Rows:
    """The items of an array. `datasets` 4.8.4 refuses one behind a byte order mark, and takes it before JSON lines."""
    with open(path, "rb") as raw:
        if raw.read(len(BOM)) == BOM:
            raise InputError("is a JSON array behind a byte order mark", path, 1, remedy="save it as UTF-8 without one")
    text = file.read(MOST_CHARACTERS + 1)
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"is a JSON array of more than {MOST_CHARACTERS >> 20} MiB", path, remedy="write JSON lines")
    try:
        found: list[Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        if str(error).startswith("Extra data"):
            raise InputError("has a list on a line, no JSON object", path, 1, remedy=OBJECT) from error
        raise InputError(f"is no JSON: {error}", path, getattr(error, "lineno", 0), remedy="check it") from error
    return gathered(path, _items(path, text), len(found))


def _items(path: str, text: str) -> Iterator[tuple[int, Row]]:
    """Each item with its line. The text is known to be JSON."""
    at, line, before = text.index("[") + 1, 1, 0
    while text[start := _next(text, at)] != "]":
        line, before = line + text.count("\n", before, start), start
        value, at = PARSE(text, start)
        yield line, _object(path, line, value)


def _next(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def line_rows(path: str, file: TextIO) -> Iterator[tuple[int, Row]]:
    """Each line that is not blank. Those behind the first rows are counted, not parsed."""
    found = 0
    for at, text in enumerate(file, 1):
        if text.strip():
            found += 1
            yield at, _row(path, at, text) if found <= FIRST else {}


def _row(path: str, line: int, text: str) -> Row:
    try:
        return _object(path, line, json.loads(text))
    except (ValueError, RecursionError) as error:
        if text.strip() == "{":
            remedy = "write a list of rows alone, or one JSON object a line"
            raise InputError("is one JSON object over several lines", path, line, remedy=remedy) from error
        raise InputError("is no JSON object", path, line, remedy="one JSON object a line") from error


def _object(path: str, line: int, value: Any) -> Row:
    if not is_mapping(value):
        what = "a list" if is_list(value) else "a bare value"
        raise InputError(f"is {what}, no JSON object", path, line, remedy=OBJECT)
    return value
