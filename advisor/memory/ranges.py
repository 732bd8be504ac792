"""The two ranges on top of the allocated peak: what a run needs, and what torch will have reserved.

A full allocator frees its cache before it fails, so what a run needs lies close to what it allocates; on a roomy card
the cache grows beyond it. Both rest on published runs.
"""

from collections.abc import Sequence

from advisor.memory.evidence import Evidence, published_evidence
from advisor.memory.ledger import Range
from advisor.memory.run_kind import ANY, expandable_segments, kind_of, kinds_of, sharding_of
from advisor.record import record, replace
from advisor.run import Run

ROUNDING = 64 << 20
"""Blocks are rounded to 512 B and segments to 2 or 20 MiB: c10/cuda/CUDACachingAllocator.cpp."""


@record
class _Reservation:
    """Reserved over allocated bytes, from ``runs`` of the kind ``key``; ``scaled`` to expandable segments.

    ``measured``: how many runs of this machine narrowed it.
    """

    key: str
    low: float
    high: float
    runs: int
    scaled: bool
    measured: int = 0


@record
class Fragmentation:
    """The share of the allocated bytes to allow for under pressure, and what it rests on."""

    share: float
    basis: str


def least_needed(allocated: int) -> int:
    """The low end of ``needed``."""
    return allocated + ROUNDING // 2


def needed(run: Run, allocated: int, evidence: Evidence | None = None) -> Range:
    """The memory with which the run goes through: allocated plus rounding, up to fragmentation under pressure."""
    share = fragmentation(run, evidence or published_evidence()).share
    return Range(least_needed(allocated), round(allocated * (1 + share)) + ROUNDING)


def reserved_peak(run: Run, allocated: int, evidence: Evidence | None = None) -> Range:
    """What torch will have reserved on a card with room to spare."""
    found = reservation(run, evidence or published_evidence())
    return Range(round(allocated * found.low), round(allocated * found.high) + ROUNDING)


def range_notes(run: Run) -> tuple[str, str]:
    """What the ranges rest on."""
    evidence = published_evidence()
    found, allowed = reservation(run, evidence), fragmentation(run, evidence)
    said = f"{found.runs} published runs"
    if found.key == kind_of(run):
        said += f" of this kind ({found.key})"
    else:
        said += f" of {'all kinds' if found.key == ANY else found.key}, and is wider: too few are {kind_of(run)}"
    if found.scaled:
        low, high = evidence.expandable_share
        said += f", all without expandable segments, which leave {low:.0%} to {high:.0%} of the slack"
        said += f" ({evidence.pairs} pairs of runs)"
    if found.measured:
        runs = "1 run" if found.measured == 1 else f"{found.measured} runs"
        said = f"{runs} of this kind measured on this machine, and around them on {found.runs} published ones"
    return (
        f"the reserved range rests on {said}",
        f"what is needed includes {allowed.share:.1%} for fragmentation: {allowed.basis}",
    )


def reservation(run: Run, evidence: Evidence) -> _Reservation:
    """What was published, narrowed by what runs of the same kind reserved on this machine's own GPUs."""
    found = published(run, evidence)
    gpu, kind, expandable = run.hardware and run.hardware.gpu.id, kind_of(run), expandable_segments(run)
    alike = [one for one in run.measured if (one.gpu, one.kind, one.expandable) == (gpu, kind, expandable)]
    return narrowed(found, [one.reserved / one.allocated for one in alike]) if alike else found


def narrowed(found: _Reservation, ratios: Sequence[float]) -> _Reservation:
    """From the lowest to the highest of ``ratios``, and for n of them 1/(n + 1) of the published width around."""
    beyond = (found.high - found.low) / (2 * (len(ratios) + 1))
    low = min(min(ratios), max(found.low, min(ratios) - beyond))
    high = max(max(ratios), min(found.high, max(ratios) + beyond))
    return replace(found, low=low, high=high, measured=len(ratios))


def published(run: Run, evidence: Evidence) -> _Reservation:
    """What the run's own kind shows, or the nearest wider one, then from the allocated bytes upwards."""
    expandable = expandable_segments(run)
    less, more = evidence.expandable_share if expandable else (1.0, 1.0)
    for key in kinds_of(run):
        if expandable and (entry := evidence.reserved_expandable.get(key)):
            low, high = entry.low, entry.high
        elif entry := evidence.reserved.get(key):
            low, high = 1 + less * (entry.low - 1), 1 + more * (entry.high - 1)
        else:
            continue
        scaled = expandable and key not in evidence.reserved_expandable
        return _Reservation(key, low if key == kind_of(run) else min(low, 1.0), high, entry.runs, scaled)
    raise LookupError(ANY)


def fragmentation(run: Run, evidence: Evidence) -> Fragmentation:
    """That of the run's way of sharding, or the largest of all; never less than estimates are too low."""
    sharding, expandable = sharding_of(run), expandable_segments(run)
    measured = evidence.needed_expandable if expandable else evidence.needed
    scale = evidence.expandable_share[1] if expandable else 1.0
    if slack := measured.get(sharding):
        failed = f"; {slack.failed} failed with less" if slack.failed else ""
        found = Fragmentation(slack.share, f"published run {slack.passed} went through with that{failed}")
    elif slack := evidence.needed.get(sharding):
        basis = f"{scale:.0%} of what published run {slack.passed} went through with, without expandable segments"
        found = Fragmentation(scale * slack.share, basis)
    else:
        shares = [slack.share for slack in measured.values()]
        shares += [scale * slack.share for key, slack in evidence.needed.items() if key not in measured]
        found = Fragmentation(max(shares), f"the most of any kind, since no published run at its limit has {sharding}")
    if found.share >= evidence.underestimated:
        return found
    return Fragmentation(evidence.underestimated, "nine of ten published runs exceed their estimates by less")
