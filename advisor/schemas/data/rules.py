"""What the rows of `--data` say of a run, as rules that are there for a call with it: ``rules.json``."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from advisor.datasets import Rows, rows_in
from advisor.engine.rule import Hit, Level, Rule
from advisor.run import Run
from advisor.schemas.data.entry import Entry, entries_of
from advisor.schemas.data.faults import FAULTS
from advisor.schemas.data.trained import Trained

TRAINS = "data-axolotl-trains"
Find = Callable[[Run, Entry], Iterable[Hit]]


def rules_on(path: str) -> dict[str, Rule]:
    """A rule for each thing that is looked at. ``InputError`` where the file cannot be read."""
    rows = rows_in(path)
    finds: dict[str, Find] = {**FAULTS, TRAINS: Trained().finds}
    return {name: _rule(name, partial(_found, find, rows)) for name, find in finds.items()}


def pages() -> dict[str, Rule]:
    """The same rules without rows, for who asks what one of them is."""
    return {name: _rule(name) for name in (*FAULTS, TRAINS)}


def _found(find: Find, rows: Rows, run: Run) -> Iterator[Hit]:
    for entry in entries_of(run, rows):
        yield from find(run, entry)


def _nothing(_run: Run) -> Iterable[Hit]:
    return ()


def _rule(name: str, finds: Callable[[Run], Iterable[Hit]] = _nothing) -> Rule:
    said: dict[str, str] = _table()[name]
    level: Level = "note" if name == TRAINS else "warning"
    return Rule(
        id=name,
        stage="lint",
        title=said["title"],
        finds=finds,
        level=level,
        why=said["why"],
        source=said["source"],
        examples=(),
    )


@cache
def _table() -> Any:
    return json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8"))
