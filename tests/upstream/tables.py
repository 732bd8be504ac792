"""What two key tables, or two files of defaults, differ in: keys new, gone, and otherwise than before."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tables.generate import sections

Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Difference:
    """A key of a level, and what it was and is; None where it is not there."""

    level: str
    key: str
    before: Any
    after: Any


def differences(before: Rows, after: Rows) -> Iterator[Difference]:
    """Key by key; ``since``, which a table says of itself, does not count."""
    for level in sorted({*before, *after}):
        old, new = before.get(level, {}), after.get(level, {})
        for key in sorted({*old, *new}):
            was, is_now = _plain(old.get(key)), _plain(new.get(key))
            if was != is_now:
                yield Difference(level, key, was, is_now)


def _plain(row: Any) -> Any:
    return {name: value for name, value in row.items() if name != "since"} if isinstance(row, dict) else row


def rows_of(file: Path) -> Rows:
    """A table by level, or defaults by model type."""
    table: Any = json.loads(file.read_text(encoding="utf-8"))
    if "levels" in table:
        return dict(sections(table))
    return {name: defaults for rows in table.values() for name, defaults in rows.items()}
