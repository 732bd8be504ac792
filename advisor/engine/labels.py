"""Labels that several rules share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.run import Run

LONGEST = 40
"""Characters of a label."""


def batches(before: "Run", after: "Run") -> str:
    """``micro batch 4 -> 1, accumulation 2 -> 8``; of long numbers, the new accumulation alone."""
    rows = f"micro batch {before.micro_batch_size} -> {after.micro_batch_size}"
    steps = after.gradient_accumulation_steps
    full = f"{rows}, accumulation {before.gradient_accumulation_steps} -> {steps}"
    return full if len(full) <= LONGEST else f"{rows}, accumulation {steps}"
