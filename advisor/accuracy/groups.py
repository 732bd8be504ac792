"""The figures of groups of like runs, and of all of them."""

from collections.abc import Sequence
from statistics import mean

from advisor.accuracy.errors import LEAST_RUNS, Errors, errors_of
from advisor.accuracy.estimators import ADVISOR, ESTIMATORS
from advisor.accuracy.judging import Judged
from advisor.record import record


@record
class Share:
    """So many of so many."""

    part: int
    whole: int


@record
class Group:
    """Like runs: errors of the allocated peak, reserved figures in range, failures that were not called ``fits``.

    ``others``: the median error of other estimators, None where they say nothing.
    """

    name: str
    errors: Errors | None
    held: Share
    caught: Share
    others: dict[str, float | None]

    @property
    def judged(self) -> bool:
        """Whether there are enough runs to judge it by."""
        return self.errors is not None and self.errors.runs >= LEAST_RUNS


@record
class Compared:
    """An estimator over all runs of which it says anything: errors, failures foreseen, false alarms."""

    name: str
    errors: Errors | None
    caught: Share
    refused: Share


def groups_of(cases: Sequence[Judged]) -> list[Group]:
    """Every group, in the table's order."""
    names = dict.fromkeys(case.case.group for case in cases)
    return [group(name, [case for case in cases if case.case.group == name]) for name in names]


def group(name: str, cases: Sequence[Judged]) -> Group:
    """The figures of some runs."""
    counted = [case for case in cases if case.case.counts]
    others = {other: _errors_with(other, counted) for other in ESTIMATORS if other != ADVISOR}
    return Group(
        name,
        errors_of([case.error for case in counted]),
        held(cases),
        caught(cases),
        {other: errors.median if errors else None for other, errors in others.items()},
    )


def mean_of_medians(groups: Sequence[Group]) -> float:
    """Over the groups that are judged, so that large ones do not outvote small ones."""
    return mean([group.errors.median for group in groups if group.errors and group.judged] or [0.0])


def held(cases: Sequence[Judged]) -> Share:
    """Reserved figures inside the stated range."""
    known = [case for case in cases if case.reserved is not None]
    return Share(sum(case.held for case in known), len(known))


def caught(cases: Sequence[Judged]) -> Share:
    """Failures that were not called ``fits``."""
    failed = [case for case in cases if case.case.out_of_memory]
    return Share(sum(case.verdict != "fits" for case in failed), len(failed))


def compared(name: str, cases: Sequence[Judged]) -> Compared:
    """An estimator on the runs of which it says anything."""
    known = [case for case in cases if ESTIMATORS[name](case) is not None]
    failed = [_warns(name, case) for case in known if case.case.out_of_memory]
    passed = [refuses(name, case) for case in known if not case.case.out_of_memory]
    errors = _errors_with(name, [case for case in cases if case.case.counts])
    return Compared(name, errors, Share(sum(failed), len(failed)), Share(sum(passed), len(passed)))


def _warns(name: str, case: Judged) -> bool:
    """Whether a failure would have come as no surprise."""
    return case.verdict != "fits" if name == ADVISOR else refuses(name, case)


def refuses(name: str, case: Judged) -> bool:
    """Whether the run is said not to fit: the advisor's verdict, or more than torch can have."""
    said = ESTIMATORS[name](case)
    return case.verdict == "does-not-fit" if name == ADVISOR else said is not None and said > case.usable


def _errors_with(name: str, counted: Sequence[Judged]) -> Errors | None:
    """An estimator's errors on the runs of which it says anything."""
    said = [(case, ESTIMATORS[name](case)) for case in counted]
    return errors_of([figure / case.allocated - 1 for case, figure in said if figure is not None])
