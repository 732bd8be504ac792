"""What a replay changes in an estimate: what torch will have reserved, and whether a tight run goes through at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.coverage import covered
from advisor.memory.ledger import Range
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.memory.ledger import Estimate
    from advisor.run import Run

AGREEMENT = 1.005
"""Tape and ledger agree within half a percent, so a tape is not believed closer to the limit than that."""
MARGIN = (0.98, 1.05)
"""Assumed, not measured: what kernels allocate inside is not on the tape, nor what threads do at once."""
ROUNDING = 64 << 20
STEP = 16 << 20


def settled(run: Run, found: Estimate) -> Estimate:
    """The estimate of a run near its limit: one that no replay brings through does not fit.

    Of the published range it may only raise the lower end: a run that is called ``fits`` or does not fit by published
    runs stays so, and a tight one never becomes ``fits``.
    """
    if found.verdict != "tight" or not covered(run):
        return found
    from advisor.allocations.replay import goes_through

    if goes_through(run, round(found.usable * AGREEMENT)):
        return found
    low = least(run, found)
    return replace(found, needed=Range(low, max(low, found.needed.high)))


def least(run: Run, found: Estimate) -> int:
    """About the least limit with which the tape goes through, above what is usable."""
    from advisor.allocations.allocator.settings import settings_of
    from advisor.allocations.replay import passes, replayed
    from advisor.allocations.step.assembly import recorded

    events, settings = recorded(run).events, settings_of(run)
    low, high = found.usable, replayed(events, settings).peak_reserved
    while high - low > STEP:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(events, settings, middle, None) else (middle, high)
    return high


def with_reserved(run: Run, found: Estimate) -> Estimate:
    """The estimate with the reserved range of a replay, where a tape covers the run and nothing was measured here."""
    if run.measured or found.verdict == "unknown" or not covered(run):
        return found
    from advisor.allocations.replay import reserved_peaks

    low, high = reserved_peaks(run)
    reserved = on_card(found, Range(round(low * MARGIN[0]), round(high * MARGIN[1]) + ROUNDING))
    return replace(found, reserved_peak=reserved, ranges="replay", notes=(*other_notes(found), REPLAYED))


def on_card(found: Estimate, reserved: Range) -> Range:
    """What of a range a card can hold: torch gives cached blocks back and tries again before it fails.

    c10/cuda/CUDACachingAllocator.cpp, DeviceCachingAllocator::malloc@2.13.0.
    """
    if found.verdict == "does-not-fit" or reserved.high <= found.usable:
        return reserved
    low = found.allocated_peak if reserved.low > found.usable else reserved.low
    return Range(low, found.usable)


REPLAYED = "the reserved range rests on a replay of the step's allocations through torch's allocator"


def other_notes(found: Estimate) -> tuple[str, ...]:
    """The notes but that of the published range."""
    return tuple(note for note in found.notes if not note.startswith("the reserved range rests on"))
