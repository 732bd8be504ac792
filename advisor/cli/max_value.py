"""``advisor estimate --max KEY``: 0 a value, 1 the smallest does not fit, 2 could not run."""

import json
from collections.abc import Iterator

import click

from advisor.engine.max_value import MaxValue, check_key, max_value, max_value_planned
from advisor.engine.options import Options, planner
from advisor.errors import InputError
from advisor.opening import LoadedRun
from advisor.progress import doing, shown
from advisor.record import record
from advisor.report.style import Style
from advisor.report.wording import number
from advisor.util import path_shown

TAKE_BACK = {
    "sequence_len": ("shorter-sequences",),
    "micro_batch_size": ("smaller-micro-batch", "shorter-sequences"),
}
"""Steps that would answer another question."""


@record(eq=False)
class Answer:
    """The largest value of a key for one run."""

    key: str
    opened: LoadedRun
    as_written: MaxValue
    planned: MaxValue


def answered(key: str, opened: LoadedRun, options: Options) -> Answer:
    """As written, and with steps: of the same training, and where these do not help of another.

    ``InputError`` for another key, and where there is no estimate.
    """
    check_key(key)
    run = opened.run
    if run.model is None or run.unreadable:
        what = "its model is unknown" if run.model is None else f"`{run.unreadable[0].key}` cannot be read"
        raise InputError(f"has no estimate: {what}", run.config.file, remedy="see `advisor check`")
    plan = planner(options.without(TAKE_BACK[key]))
    with shown(), doing(f"looking for the largest {key}"):
        same = max_value_planned(opened, key, lambda run: plan(run, True))
        found = same if same.value is not None else max_value_planned(opened, key, lambda run: plan(run, False))
        return Answer(key, opened, max_value(opened, key), found)


def show(answer: Answer, format_: str, style: Style) -> int:
    """Prints the answer."""
    click.echo(as_json(answer) if format_ == "json" else "\n".join(lines(answer, style)), color=True)
    return 0 if answer.as_written.value or answer.planned.value else 1


def lines(answer: Answer, style: Style) -> Iterator[str]:
    """The file and its cards, then one line for each search."""
    run = answer.opened.run
    assert run.hardware is not None
    yield from style.prose(
        f"largest {answer.key} on {run.hardware.title}", f"{path_shown(run.config.file)}   ", "strong", indent=2
    )
    yield ""
    yield from style.prose(words(answer.as_written, answer), "  as written  ")
    yield from style.prose(words(answer.planned, answer), "  with steps  ")
    model = run.model
    positions = model.max_position_embeddings if model is not None else None
    if answer.key == "sequence_len" and positions:
        yield ""
        yield from style.prose(f"the model has {positions:,} positions", "  note: ", "note")


def words(found: MaxValue, answer: Answer) -> str:
    """One search in words."""
    hardware = answer.opened.run.hardware
    assert hardware is not None
    needs = f"{number(found.high)} of {number(hardware.usable)} GiB"
    if found.value is None:
        return f"not even the smallest fits: {needs}"
    value = f"{found.value:,}" + (" or more" if found.bounded else "")
    steps = f", {', '.join(found.steps)}" if found.steps else ""
    training = "; changes what is trained" if found.changes_training else ""
    return f"{value} ({needs}{steps}{training})"


def as_json(answer: Answer) -> str:
    """Both searches for programs."""
    run = answer.opened.run
    assert run.hardware is not None
    said = {"as_written": one(answer.as_written), "with_steps": one(answer.planned)}
    named = {"version": 1, "file": run.config.file, "hardware": run.hardware.title, "key": answer.key}
    return json.dumps({**named, **said}, indent=2)


def one(found: MaxValue) -> dict[str, object]:
    """One search."""
    return {
        "value": found.value,
        "needed": found.needed,
        "steps": list(found.steps),
        "changes_training": found.changes_training,
    }
