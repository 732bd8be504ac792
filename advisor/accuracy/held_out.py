"""Leave one source out: what the ranges would say of its runs if they rested on the others alone."""

from collections.abc import Callable, Sequence
from statistics import median

from advisor.accuracy.groups import Share
from advisor.accuracy.judging import Judged, holds, verdict, width
from advisor.accuracy.ranges import derived, sure
from advisor.memory.evidence import Evidence
from advisor.memory.ranges import needed, reserved_peak
from advisor.record import record

Source = Callable[[Judged], str]


@record
class HeldOut:
    """One source: reserved figures inside the range, its median width, certain failures that are not called fits."""

    source: str
    held: Share
    width: float
    caught: Share


def by_file(case: Judged) -> str:
    """The published file."""
    return case.case.source


def by_repository(case: Judged) -> str:
    """The repository with all its files, which share a machine and an author."""
    return case.case.repository


def held_out(cases: Sequence[Judged], source: Source) -> list[HeldOut]:
    """A line for each source."""
    return [one_source(name, cases, source) for name in dict.fromkeys(source(case) for case in cases)]


def one_source(name: str, cases: Sequence[Judged], source: Source) -> HeldOut:
    """The runs of one source under the ranges of the others."""
    evidence = derived([case for case in cases if source(case) != name])
    mine = [case for case in cases if source(case) == name]
    known = [case for case in mine if case.reserved is not None]
    ranges = [reserved_peak(case.run, case.estimated, evidence) for case in known]
    inside = [holds(within, case.reserved or 0.0) for case, within in zip(known, ranges, strict=True)]
    failed = [case for case in mine if case.case.out_of_memory and sure(case)]
    return HeldOut(
        name,
        Share(sum(inside), len(inside)),
        median([width(within) for within in ranges] or [0.0]),
        Share(sum(_warned(case, evidence) for case in failed), len(failed)),
    )


def _warned(case: Judged, evidence: Evidence) -> bool:
    """Whether the run is not called ``fits``."""
    return verdict(needed(case.run, case.estimated, evidence), case.usable) != "fits"


def whole(sources: Sequence[HeldOut]) -> Share:
    """Reserved figures inside the range, over all sources."""
    return Share(sum(one.held.part for one in sources), sum(one.held.whole for one in sources))
