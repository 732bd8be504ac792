"""Everything that ``advisor accuracy`` says, as figures."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from advisor.accuracy.claims import Claim, claims
from advisor.accuracy.estimators import ESTIMATORS
from advisor.accuracy.groups import Compared, Group, Share, compared, group, groups_of, mean_of_medians
from advisor.accuracy.held_out import HeldOut, by_file, by_repository, held_out
from advisor.accuracy.judging import Judged, width
from advisor.accuracy.ranges import sure
from advisor.accuracy.replays import NearLimit, Replayed, near_limits, replays
from advisor.memory.run_kind import expandable_segments, kind_of
from advisor.record import record
from advisor.util import GIB


@record
class Width:
    """The reserved range of a kind: runs with a figure, how many it holds, its median width."""

    kind: str
    expandable: bool
    held: Share
    width: float


@record
class _Failure:
    """A run whose failure is inferred from figures that are missing, and what is said of it."""

    id: str
    group: str
    sequence_len: int
    micro_batch_size: int
    verdict: str
    needed_gib: tuple[float, float]
    usable_gib: float


@record
class _Verdicts:
    """What the verdict is worth: failures, false alarms, the width of ``needed``, the share of ``tight``."""

    sure: Share
    inferred: Share
    refused: Share
    tight: Share
    width: float


@record
class Accuracy:
    """The whole report; the last fields but ``sources`` are those of the published runs alone.

    ``median_widths``: of the reserved range, by whether segments are expandable.
    """

    published: bool
    groups: Sequence[Group]
    all: Group
    mean_of_medians: float
    compared: Sequence[Compared]
    verdicts: _Verdicts
    failures: Sequence[_Failure]
    widths: Sequence[Width]
    median_widths: Mapping[bool, float]
    replays: Sequence[Replayed]
    near_limits: Sequence[NearLimit]
    files: Sequence[HeldOut]
    repositories: Sequence[HeldOut]
    claims: Sequence[Claim]
    sources: Sequence[str]


def accuracy(cases: Sequence[Judged], *, published: bool = True) -> Accuracy:
    """The report on these runs."""
    groups = groups_of(cases)
    return Accuracy(
        published=published,
        groups=groups,
        all=group("all runs", cases),
        mean_of_medians=mean_of_medians(groups),
        compared=[compared(name, cases) for name in ESTIMATORS],
        verdicts=_verdicts_of(cases),
        failures=[failure(case) for case in cases if case.case.out_of_memory and not sure(case)],
        widths=_widths_of(cases),
        median_widths=median_widths(cases),
        replays=replays(cases),
        near_limits=near_limits(cases),
        files=held_out(cases, by_file) if published else (),
        repositories=held_out(cases, by_repository) if published else (),
        claims=list(claims()) if published else (),
        sources=list(dict.fromkeys(case.case.repository for case in cases)),
    )


def _verdicts_of(cases: Sequence[Judged]) -> _Verdicts:
    """What is said of runs that failed and of those that went through."""
    failed = [case for case in cases if case.case.out_of_memory]
    passed = [case for case in cases if not case.case.out_of_memory]
    certain = [case.verdict != "fits" for case in failed if sure(case)]
    inferred = [case.verdict != "fits" for case in failed if not sure(case)]
    return _Verdicts(
        sure=Share(sum(certain), len(certain)),
        inferred=Share(sum(inferred), len(inferred)),
        refused=Share(sum(case.verdict == "does-not-fit" for case in passed), len(passed)),
        tight=Share(sum(case.verdict == "tight" for case in cases), len(cases)),
        width=median([width(case.estimate.needed) for case in cases] or [0.0]),
    )


def _widths_of(cases: Sequence[Judged]) -> list[Width]:
    """The reserved ranges by kind of run, without and with expandable segments."""
    keys = dict.fromkeys((kind_of(case.run), expandable_segments(case.run)) for case in cases if case.reserved)
    return [width_of(kind, expandable, cases) for kind, expandable in sorted(keys)]


def median_widths(cases: Sequence[Judged]) -> dict[bool, float]:
    """The median width of the reserved range, by whether segments are expandable."""
    wide: defaultdict[bool, list[float]] = defaultdict(list)
    for case in cases:
        if case.reserved:
            wide[expandable_segments(case.run)].append(width(case.estimate.reserved_peak))
    return {expandable: median(found) for expandable, found in wide.items()}


def width_of(kind: str, expandable: bool, cases: Sequence[Judged]) -> Width:
    """The reserved range of one kind."""
    mine = [c for c in cases if c.reserved and kind_of(c.run) == kind and expandable_segments(c.run) == expandable]
    return Width(
        kind,
        expandable,
        Share(sum(case.held for case in mine), len(mine)),
        median(width(case.estimate.reserved_peak) for case in mine),
    )


def failure(case: Judged) -> _Failure:
    """A run that was taken to have failed."""
    needed, config = case.estimate.needed, case.case.config
    return _Failure(
        case.case.id,
        case.case.group,
        config["sequence_len"],
        config["micro_batch_size"],
        case.verdict,
        (needed.low / GIB, needed.high / GIB),
        case.usable / GIB,
    )
