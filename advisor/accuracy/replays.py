"""Measured runs on one GPU with and without the replay of torch's allocator: what it changes, and whether it holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from advisor.accuracy.groups import Share
from advisor.accuracy.judging import Judged, holds, verdict, width
from advisor.allocations.coverage import covered
from advisor.allocations.refine import settled, with_reserved
from advisor.memory.run_kind import kind_of
from advisor.record import record, replace
from advisor.util import GIB

if TYPE_CHECKING:
    from advisor.memory.ledger import Range

NEAR = 0.15
"""A run is near its limit where ``needed`` begins or ends within this share of it, or where it lies between."""


@record
class Replayed:
    """The reserved range of the runs of a kind that a tape covers, without and with the replay."""

    kind: str
    held: Share
    width: float
    held_with: Share
    width_with: float


@record
class NearLimit:
    """A run near its card's limit: what ``needed`` says without and with the replay. Sizes in GiB."""

    id: str
    group: str
    failed: bool
    usable_gib: float
    needed_gib: tuple[float, float]
    verdict: str
    needed_with_gib: tuple[float, float]
    verdict_with: str


def replays(cases: Sequence[Judged]) -> list[Replayed]:
    """By kind, and for all at the end; nothing if no run has a tape."""
    by_kind: defaultdict[str, list[tuple[Judged, Range]]] = defaultdict(list)
    for case in cases:
        if case.reserved is not None and covered(case.run):
            refined = with_reserved(replace(case.run, measured=()), case.estimate)
            by_kind[kind_of(case.run)].append((case, refined.reserved_peak))
    rows = [replayed(kind, found) for kind, found in sorted(by_kind.items())]
    every = [one for found in by_kind.values() for one in found]
    return [*rows, replayed("all", every)] if every else []


def replayed(kind: str, found: Sequence[tuple[Judged, Range]]) -> Replayed:
    """The figures of one kind."""
    kept = [case.held for case, _ in found]
    better = [holds(refined, case.reserved or 0) for case, refined in found]
    return Replayed(
        kind,
        Share(sum(kept), len(found)),
        median(width(case.estimate.reserved_peak) for case, _ in found),
        Share(sum(better), len(found)),
        median(width(refined) for _, refined in found),
    )


def near_limits(cases: Sequence[Judged]) -> list[NearLimit]:
    """The covered runs near their limit, in the order in which they are given."""
    return [near_limit(case) for case in cases if _is_near(case) and covered(case.run)]


def _is_near(case: Judged) -> bool:
    """Whether the verdict hangs on a few percent."""
    needed, usable = case.estimate.needed, case.usable
    return needed.low * (1 - NEAR) <= usable <= needed.high * (1 + NEAR)


def near_limit(case: Judged) -> NearLimit:
    """What is said of one run."""
    refined = settled(case.run, replace(case.estimate, usable=round(case.usable)))
    before, after = case.estimate.needed, refined.needed
    return NearLimit(
        case.case.id,
        case.case.group,
        case.case.out_of_memory,
        case.usable / GIB,
        (before.low / GIB, before.high / GIB),
        case.verdict,
        (after.low / GIB, after.high / GIB),
        verdict(after, case.usable),
    )
