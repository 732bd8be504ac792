"""``advisor estimate --max KEY``: 0 a value, 1 the smallest does not fit, 2 could not run."""

import json
from collections.abc import Iterator

import click

from advisor.engine.max_value import MaxValue
from advisor.report.style import Style
from advisor.report.wording import number
from advisor.session.largest import Largest
from advisor.util import path_shown


def show(found: Largest, format_: str, style: Style) -> int:
    """Prints the answer."""
    click.echo(as_json(found) if format_ == "json" else "\n".join(lines(found, style)), color=True)
    return 0 if found.as_written.value or found.planned.value else 1


def lines(found: Largest, style: Style) -> Iterator[str]:
    """The file and its cards, then one line for each search."""
    run = found.opened.run
    assert run.hardware is not None
    yield from style.prose(
        f"largest {found.key} on {run.hardware.title}", f"{path_shown(run.config.file)}   ", "strong", indent=2
    )
    yield ""
    yield from style.prose(words(found.as_written, found), "  as written  ")
    yield from style.prose(words(found.planned, found), "  with steps  ")
    if found.positions:
        yield ""
        yield from style.prose(f"the model has {found.positions:,} positions", "  note: ", "note")


def words(value: MaxValue, found: Largest) -> str:
    """One search in words."""
    hardware = found.opened.run.hardware
    assert hardware is not None
    needs = f"{number(value.high)} of {number(hardware.usable)} GiB"
    if value.value is None:
        return f"not even the smallest fits: {needs}"
    said = f"{value.value:,}" + (" or more" if value.bounded else "")
    steps = f", {', '.join(value.steps)}" if value.steps else ""
    training = "; changes what is trained" if value.changes_training else ""
    return f"{said} ({needs}{steps}{training})"


def as_json(found: Largest) -> str:
    """Both searches for programs."""
    run = found.opened.run
    assert run.hardware is not None
    said = {"as_written": one(found.as_written), "with_steps": one(found.planned)}
    named = {"version": 1, "file": run.config.file, "hardware": run.hardware.title, "key": found.key}
    return json.dumps({**named, **said}, indent=2)


def one(value: MaxValue) -> dict[str, object]:
    """One search."""
    return {
        "value": value.value,
        "needed": value.needed,
        "steps": list(value.steps),
        "changes_training": value.changes_training,
    }
