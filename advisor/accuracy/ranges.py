"""From measured runs to the ranges that an estimate states: the table that ``advisor/memory/ranges.json`` is."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import ceil, floor

from advisor.accuracy.errors import percentile
from advisor.accuracy.judging import Judged
from advisor.memory.evidence import Evidence, Reserved, Slack
from advisor.memory.run_kind import ANY, expandable_segments, kinds_of, sharding_of

LEAST_RUNS = 10
"""Fewer of a kind say nothing of their own; they count in the wider kinds."""
LOWER, UPPER = 0.1, 0.95
"""The percentiles of measured slack that a range goes from and to."""
TENTH = 0.1


def derived(cases: Sequence[Judged]) -> Evidence:
    """What these runs show."""
    with_segments = [case for case in cases if expandable_segments(case.run)]
    without = [case for case in cases if not expandable_segments(case.run)]
    measured = _reserved_by_kind(with_segments)
    measured.pop(ANY, None)
    share, pairs = expandable_share(with_segments, without)
    low = [max(0.0, -case.error / (1 + case.error)) for case in cases if case.case.counts]
    return Evidence(
        reserved=_reserved_by_kind(without),
        reserved_expandable=measured,
        needed=_slack_by_sharding(without),
        needed_expandable=_slack_by_sharding(with_segments),
        expandable_share=share,
        pairs=pairs,
        underestimated=upwards(percentile(low, 1 - TENTH), 3) if low else 0.0,
    )


def _reserved_by_kind(cases: Iterable[Judged]) -> dict[str, Reserved]:
    """Reserved over allocated bytes on cards with room, of each kind and of each wider one."""
    found: defaultdict[str, list[Judged]] = defaultdict(list)
    for case in cases:
        if case.reserved is not None and not case.case.near_limit:
            for key in kinds_of(case.run):
                found[key].append(case)
    ranges = {key: reserved_range(found[key]) for key in sorted(found) if len(found[key]) >= LEAST_RUNS}
    return {**ranges, ANY: widest(ranges, found[ANY])} if found[ANY] else ranges


def widest(ranges: Mapping[str, Reserved], cases: Sequence[Judged]) -> Reserved:
    """For kinds without runs of their own: from the lowest to the highest of all kinds."""
    kinds = [reserved_range(cases), *ranges.values()]
    sources = len({case.case.source for case in cases})
    return Reserved(min(kind.low for kind in kinds), max(kind.high for kind in kinds), len(cases), sources)


def reserved_range(cases: Sequence[Judged]) -> Reserved:
    """The 10th to the 95th percentile of the slack, widened by 1/(n + 1) of it where n sources show it."""
    slacks = [slack for case in cases if (slack := slack_of(case)) is not None]
    sources = len({case.case.source for case in cases})
    low, high, wider = percentile(slacks, LOWER), percentile(slacks, UPPER), 1 / (sources + 1)
    low = min(low, low * (1 - wider))
    return Reserved(_downwards(1 + low, 2), upwards(1 + high * (1 + wider), 2), len(cases), sources)


def slack_of(case: Judged) -> float | None:
    """What torch had reserved beyond what was allocated, as a share of the latter."""
    return None if case.reserved is None else case.reserved / case.allocated - 1


def expandable_share(with_segments: Sequence[Judged], without: Sequence[Judged]) -> tuple[tuple[float, float], int]:
    """How much of the slack expandable segments leave, in runs that differ in nothing else; all, if there are none."""
    shares: list[float] = []
    for one, other in product(with_segments, without):
        mine, theirs = slack_of(one), slack_of(other)
        if mine is not None and theirs and setting(one) == setting(other):
            shares.append(mine / theirs)
    if not shares:
        return (0.0, 1.0), 0
    low, high = percentile(shares, TENTH), percentile(shares, 1 - TENTH)
    return (_downwards(low, 2), min(1.0, upwards(high, 2))), len(shares)


def setting(case: Judged) -> tuple[object, ...]:
    """What two runs have in common that differ in the allocator alone."""
    config = case.case.config
    return case.case.group, config["sequence_len"], config["micro_batch_size"]


def _slack_by_sharding(cases: Iterable[Judged]) -> dict[str, Slack]:
    """The fragmentation that each way of sharding needs room for."""
    found: defaultdict[str, list[Judged]] = defaultdict(list)
    for case in cases:
        found[sharding_of(case.run)].append(case)
    slacks = {key: slack_under_pressure(found[key]) for key in sorted(found)}
    return {key: slack for key, slack in slacks.items() if slack is not None}


def slack_under_pressure(cases: Sequence[Judged]) -> Slack | None:
    """The least slack of a run that went through, above the room that a certain failure had beyond its estimate."""
    certain = [case for case in cases if case.case.out_of_memory and sure(case)]
    failures = [(case.usable / case.estimated - 1, case.case.id) for case in certain]
    failed = max((failure for failure in failures if failure[0] > 0), default=None)
    least = failed[0] if failed else 0.0
    passed = [(slack, case.case.id) for case in cases if (slack := slack_of(case)) is not None and slack > least]
    if not passed:
        return None
    share, name = min(passed)
    return Slack(upwards(share, 3), name, failed[1] if failed else None)


def sure(case: Judged) -> bool:
    """Whether the run's failure was reported, not inferred."""
    return case.case.confidence == "high"


def _downwards(value: float, digits: int) -> float:
    """Rounded down."""
    return floor(round(value * 10**digits, 6)) / 10**digits


def upwards(value: float, digits: int) -> float:
    """Rounded up."""
    return ceil(round(value * 10**digits, 6)) / 10**digits
