"""Errors that an edit brings about: what a fix and a plan must never do."""

from collections import Counter
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from advisor.engine.newer import hits_of
from advisor.engine.registry import built_in_rules
from advisor.engine.rule import Rule
from advisor.run import Run

AT_TIMES = frozenset(
    {
        "allgather-bucket-no-effect",
        "context-parallel-mismatch",
        "cpu-offload-replaces-optimizer",
        "deepspeed-ignored-key",
        "simpo-settings",
        "unknown-key",
    }
)
"""Rules of a lower level that speak at the level of errors in some cases; besides all errors, these are asked."""
OF_MEMORY = frozenset({"does-not-fit", "host-memory-exceeded"})
"""What a plan is about: it may go through states that have these."""
_known: WeakKeyDictionary[Run, Counter[str]] = WeakKeyDictionary()


def new_errors(before: Run, after: Run, *, memory: bool = True) -> list[str]:
    """The built-in rules that find more errors after an edit than before it, whatever a call selects.

    Without ``memory``, those about the size of the run are left to the verdict.
    """
    added = errors_but_memory(after) - errors_but_memory(before)
    return sorted(added + (_memory_errors(after) - _memory_errors(before)) if memory else added)


def errors_but_memory(run: Run) -> Counter[str]:
    """How many errors each built-in rule finds, those about the size of the run not asked."""
    if run not in _known:
        _known[run] = Counter(_errors_by((rule for rule in error_rules(run) if rule.id not in OF_MEMORY), run))
    return _known[run]


def _memory_errors(run: Run) -> Counter[str]:
    """How many errors each rule about the size of the run finds."""
    return Counter(_errors_by((rule for rule in error_rules(run) if rule.id in OF_MEMORY), run))


def stopped_by(rule: str, run: Run) -> bool:
    """Whether a built-in rule finds an error in this run."""
    return any(_errors_by((built_in_rules("lint")[rule],), run))


def stops_less(before: Run, after: Run) -> bool:
    """Whether less stops a run than before: no other error than those about its size, and fewer of them."""
    return errors_but_memory(after).keys() < errors_but_memory(before).keys()


def _errors_by(rules: Iterable[Rule], run: Run) -> Iterator[str]:
    """The name of a rule for each error that it finds."""
    return (rule.id for rule in rules for hit in hits_of(rule, run) if (hit.level or rule.level) == "error")


def error_rules(run: Run) -> list[Rule]:
    """The built-in rules that may find an error in this run."""
    rules = built_in_rules("lint").values()
    speaking = [rule for rule in rules if rule.level == "error" or rule.id in AT_TIMES]
    return [rule for rule in speaking if rule.alone or not run.is_json_alone]
