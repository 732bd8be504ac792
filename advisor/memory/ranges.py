"""The two ranges on top of the allocated peak: what a run needs, and what torch will have reserved.

A full allocator frees its cache before it fails, so what a run needs lies close to what it allocates; on a roomy card
the cache grows beyond it.
"""

from typing import Literal

from advisor.memory.ledger import Range
from advisor.run import Run

ROUNDING = 64 << 20
"""Blocks are rounded to 512 B and segments to 2 or 20 MiB: c10/cuda/CUDACachingAllocator.cpp."""

Kind = Literal["single", "fsdp", "zero-2", "zero-3"]

# Reserved over estimated bytes, 5th to 95th percentile of the published runs of a kind (`advisor accuracy`), and how
# many runs those are; the second half of each pair is with expandable segments, halved where nobody has measured it.
RESERVED: dict[Kind, tuple[tuple[float, float, int], tuple[float, float, int]]] = {
    "single": ((1.00, 1.45, 17), (1.00, 1.23, 0)),
    "fsdp": ((1.00, 1.52, 23), (1.00, 1.26, 0)),
    "zero-2": ((1.01, 1.13, 22), (1.00, 1.07, 0)),
    "zero-3": ((1.12, 1.48, 61), (1.07, 1.25, 20)),
}
# Provisional: the fragmentation at which published runs near their card's limit failed or still went through.
FRAGMENTATION: dict[Kind, tuple[float, float]] = {
    "single": (0.06, 0.03),
    "fsdp": (0.14, 0.05),
    "zero-2": (0.03, 0.03),
    "zero-3": (0.20, 0.06),
}


def needed(run: Run, allocated: int) -> Range:
    """The memory with which the run goes through: allocated plus rounding, up to fragmentation under pressure."""
    slack = FRAGMENTATION[kind_of(run)][expandable_segments(run)]
    return Range(allocated + ROUNDING // 2, round(allocated * (1 + slack)) + ROUNDING)


def reserved_peak(run: Run, allocated: int) -> Range:
    """What torch will have reserved on a card with room to spare."""
    low, high, _ = RESERVED[kind_of(run)][expandable_segments(run)]
    return Range(round(allocated * low), round(allocated * high) + ROUNDING)


def range_notes(run: Run) -> tuple[str, str]:
    """What the ranges rest on."""
    runs = RESERVED[kind_of(run)][expandable_segments(run)][2]
    basis = (
        f"{runs} published runs of this kind"
        if runs
        else "no published run with expandable segments: half of the slack without"
    )
    return (
        f"the reserved range rests on {basis}",
        "what is needed is provisional: one share of fragmentation for each kind of run",
    )


def kind_of(run: Run) -> Kind:
    """The kind of run, as far as fragmentation is concerned: how it is sharded."""
    if run.zero is not None:
        return "zero-3" if run.zero.stage == 3 else "zero-2"
    return "fsdp" if run.fsdp is not None else "single"


def expandable_segments(run: Run) -> bool:
    """``axolotl`` sets expandable segments for torch 2.9 and later: axolotl/cli/main.py:45-49@0.19.0."""
    if run.stack.expandable_segments is not None:
        return run.stack.expandable_segments
    return run.stack.trainer == "axolotl" and run.stack.at_least("torch", "2.9.0")
