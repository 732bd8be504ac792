"""The largest value of a key with which a run still fits, as written and with the plan."""

from collections.abc import Callable, Sequence

from advisor.documents import Set
from advisor.engine.states import Plan, State
from advisor.errors import InputError
from advisor.opening import LoadedRun, open_run
from advisor.record import record, replace
from advisor.run import Run

STEP_OF_LENGTH = 256
"""Lengths are multiples of it, as packing and kernels like them."""
LONGEST, LARGEST_BATCH = 1 << 22, 1 << 12
KEYS = {"sequence_len": STEP_OF_LENGTH, "micro_batch_size": 1}
MOST = {"sequence_len": LONGEST, "micro_batch_size": LARGEST_BATCH}


@record
class MaxValue:
    """``value`` is None where not even the smallest fits; ``needed`` and ``verdict`` are those of the run with it."""

    value: int | None
    needed: int
    verdict: str
    bounded: bool = False
    """Whether the search ended at its own bound, and not at the card's."""
    steps: tuple[str, ...] = ()
    changes_training: bool = False
    high: int = 0
    """The high end of ``needed``, which screens show."""


def max_value(opened: LoadedRun, key: str) -> MaxValue:
    """As written, whatever the length that the model was trained for."""
    return searched(key, lambda value: outcome(with_value(opened, key, value)))


def max_value_planned(opened: LoadedRun, key: str, planner: Callable[[Run], Plan]) -> MaxValue:
    """With the plan's steps, less those that would take the value back."""
    return searched(key, lambda value: _planned_outcome(with_value(opened, key, value), key, planner))


def with_value(opened: LoadedRun, key: str, value: object) -> Run:
    """The run with another value of the key."""
    config = opened.run.config.changed(Set(key, value))
    assert opened.context is not None, "a run that was opened has a context"
    return open_run(config, opened.context).run


def outcome(run: Run) -> MaxValue:
    """What is needed as written."""
    found = State(run).estimate
    return MaxValue(None, found.needed.low, found.verdict, high=found.needed.high)


def _planned_outcome(run: Run, key: str, planner: Callable[[Run], Plan]) -> MaxValue:
    """What is needed at the end of the plan; a plan that changes the key answers another question."""
    plan = planner(run)
    end = plan.end
    verdict = "does-not-fit" if end.run.config.get(key) != run.config.get(key) else end.estimate.verdict
    high = end.estimate.needed.high
    return MaxValue(None, end.needed, verdict, steps=plan.names, changes_training=not plan.safe, high=high)


def searched(key: str, tried: Callable[[int], MaxValue], *, least: int = 1) -> MaxValue:
    """Doubles, then halves, from ``least`` units on: memory only grows with either key."""
    unit, most = KEYS[key], MOST[key] // KEYS[key]
    low, best = least - 1, None
    high = least
    found = tried(high * unit)
    while found.verdict == "fits":
        low, best, high = high, replace(found, value=high * unit), 2 * high
        if high > most:
            break
        found = tried(high * unit)
    if best is None:
        return found
    if high > most:
        return replace(best, bounded=True)
    while high - low > 1:
        middle = (low + high) // 2
        found = tried(middle * unit)
        if found.verdict == "fits":
            low, best = middle, replace(found, value=middle * unit)
        else:
            high = middle
    return best


def check_key(key: str) -> str:
    """The key, if it is one whose largest value can be found. ``InputError``."""
    if key not in KEYS:
        names: Sequence[str] = tuple(f"`--max {name}`" for name in KEYS)
        raise InputError(f"`--max {key}` is not a key whose largest value can be found", remedy=" or ".join(names))
    return key
