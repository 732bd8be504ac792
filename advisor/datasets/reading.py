"""A file -> its rows, as the library `datasets` reads that file for axolotl."""

import gzip
import os
from collections.abc import Callable, Iterator
from typing import TextIO

from advisor.datasets.csv_rows import csv_rows
from advisor.datasets.json_rows import array_rows, line_rows, starts_with
from advisor.datasets.parquet_rows import parquet_rows
from advisor.datasets.rows import Row, Rows, gathered
from advisor.errors import InputError

NAME = "name a file of JSON lines, JSON, CSV, Parquet or text"
KINDS = (".parquet", ".csv", ".txt")
"""Looked for anywhere in a path, in this order; all else is JSON: axolotl/utils/data/shared.py:102-119@0.19.0."""
OTHERS = (".tsv", ".xlsx", ".xls", ".arrow", ".feather", ".zip", ".zst", ".xz", ".bz2", ".tar", ".md", ".pdf")
GZIP = b"\x1f\x8b"
Opener = Callable[..., TextIO]


def rows_in(path: str, remedy: str = NAME) -> Rows:
    """The rows of JSON lines, a JSON array, CSV, Parquet or text; ``.gz`` of them too, as `datasets` unpacks it.

    ``InputError`` with the line where one is no row.
    """
    if not os.path.isfile(path):
        raise InputError("is no file of rows that can be read here", path, remedy=remedy)
    low = path.lower()
    if low.endswith(OTHERS):
        kind = os.path.splitext(low)[1]
        raise InputError(f"is `{kind}`, which is not read here", path, remedy="write JSON lines, CSV or Parquet")
    try:
        return _read(path, next((kind for kind in KINDS if kind in path), ".json"))
    except UnicodeDecodeError as error:
        raise InputError(f"is no UTF-8: {error.reason}", path, remedy="save it as UTF-8") from error
    except (OSError, EOFError) as error:
        raise InputError(f"cannot be read: {error}", path, remedy="check the file") from error


def _read(path: str, kind: str) -> Rows:
    if kind == ".parquet":
        return parquet_rows(path)
    with open(path, "rb") as raw:
        opener: Opener = gzip.open if raw.read(2) == GZIP else open  # pyright: ignore[reportAssignmentType]
    with opener(path, "rt", encoding="utf-8-sig", newline="" if kind == ".csv" else None) as file:
        if kind != ".json":
            return gathered(path, csv_rows(path, file) if kind == ".csv" else _text_rows(file))
        if starts_with(file) == "[":
            return array_rows(path, file)
        return gathered(path, line_rows(path, file))


def _text_rows(file: TextIO) -> Iterator[tuple[int, Row]]:
    """A line is a row, an empty one too."""
    yield from ((at, {"text": line.rstrip("\n")}) for at, line in enumerate(file, 1))
