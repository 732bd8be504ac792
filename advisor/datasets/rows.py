"""What a file of rows holds: the first of them, where each stands, and how many there are."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from advisor.errors import InputError
from advisor.record import record

FIRST = 200
"""Rows that are looked at."""
Row = Mapping[str, Any]


@record(eq=False)
class Rows:
    """The first rows of a file, the line of each (0 in a file without lines), and how many there are in all."""

    path: str
    first: tuple[Row, ...]
    lines: tuple[int, ...]
    count: int

    @property
    def whole(self) -> bool:
        """Whether every row was looked at."""
        return self.count == len(self.first)

    @property
    def seen(self) -> str:
        """Which rows were looked at, in words."""
        return f"{self.count:,} rows" if self.whole else f"the first {len(self.first)} of {self.count:,} rows"


def gathered(path: str, rows: Iterable[tuple[int, Row]], count: int | None = None) -> Rows:
    """The first of the rows, with their lines; the rest is counted, where ``count`` does not say it."""
    left = iter(rows)
    first = list(itertools.islice(left, FIRST))
    if not first:
        raise InputError("has no rows", path, remedy="name the file that has them")
    in_all = len(first) + sum(1 for _ in left) if count is None else count
    return Rows(path, tuple(row for _, row in first), tuple(line for line, _ in first), in_all)
