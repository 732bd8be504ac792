"""``max`` and ``oom`` as tools: how large a value may be, and what to do after a run died."""

from advisor.cli.crash_log.explained import dead, with_config, without_config
from advisor.cli.crash_log.next_steps import Advice
from advisor.engine.max_value import MaxValue
from advisor.errors import InputError
from advisor.opening import open_run
from advisor.report.agent import TRAINING, answered, gib, known
from advisor.session.largest import largest

from .answers import Answer
from .asked import Asked


def largest_of(one: Asked, key: str) -> Answer:
    """The largest value of a key, as written and with steps. ``InputError`` without GPUs or an estimate."""
    session = one.session
    opened = open_run(one.document, session.context)
    hardware = opened.run.hardware
    if hardware is None:
        raise InputError("no GPUs are stated", one.file, remedy='state them: `gpus`: "8x a100-80gb"')
    found = largest(key, opened, session.options_of(opened))
    said = {
        "key": key,
        "hardware": hardware.title,
        "usable_gib": gib(hardware.usable),
        "as_written": _value(found.as_written),
        "with_steps": _value(found.planned),
        "positions_of_the_model": found.positions,
    }
    return known(said)


def _value(found: MaxValue) -> Answer:
    """One search."""
    said = {
        "value": found.value,
        "or_more": found.bounded or None,
        "needed_gib": gib(found.high),
        "steps": list(found.steps) or None,
        "training": TRAINING[not found.changes_training] if found.steps else None,
    }
    return known(said)


def died(text: str, log: str, one: Asked | None, *, stated: bool) -> Answer:
    """Why a run died, and what helps: with its config the edits that suffice for what was free."""
    found = dead(text, log, stated=stated)
    said = without_config(found) if one is None else with_config(found, one.document, one.session)
    answer = said.report.answer if said.report is not None else None
    hardware = said.hardware if said.report is not None else None
    head = {
        "happened": found.happened,
        "phase": found.death.moment,
        "first": said.first or None,
        "remedies": _remedies(said.advice) if said.advice is not None else None,
        "gpus": hardware.spec if hardware is not None else None,
    }
    told = [*(said.advice.notes if said.advice is not None else ()), *filter(None, said.told)]
    return known(head | (answered(answer) if answer is not None else {}) | {"told": told})


def _remedies(advice: Advice) -> list[Answer] | None:
    """Mildest first."""
    listed = [*((one, "same") for one in advice.same), *((one, "changes") for one in advice.changes)]
    return [
        known({"does": one.title, "yaml": list(one.lines) or None, "training": training}) for one, training in listed
    ] or None
