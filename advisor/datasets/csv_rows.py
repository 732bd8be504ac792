"""CSV -> rows, as pandas reads it for `datasets`."""

import csv
import sys
from collections.abc import Iterator
from typing import TextIO

from advisor.datasets.rows import Row
from advisor.errors import InputError

NOTHING = {"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A"}
"""Cells that pandas takes for empty: `keep_default_na` of its `read_csv`."""


def csv_rows(path: str, file: TextIO) -> Iterator[tuple[int, Row]]:
    """Each row below the header with the line on which it begins; commas alone part columns."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.reader(file)
    try:
        names = next(reader, None) or []
        _check(path, names)
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not cells:
                continue
            if len(cells) > len(names):
                message = f"has {len(cells)} cells under {len(names)} columns"
                raise InputError(message, path, line, remedy='put cells with commas between quotes: "a, b"')
            yield line, {name: _value(cell) for name, cell in zip(names, cells, strict=False)}
    except csv.Error as error:
        raise InputError(f"is no CSV: {error}", path, reader.line_num, remedy="check its quotes") from error


def _check(path: str, names: list[str]) -> None:
    other = next((mark for mark in (";", "\t", "|") if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        word = "tabs" if other == "\t" else f"`{other}`"
        message = f"has one column, {names[0]!r}: axolotl parts columns at commas alone"
        raise InputError(message, path, 1, remedy=f"write it with commas instead of {word}")


def _value(cell: str) -> str | None:
    return None if cell in NOTHING else cell
