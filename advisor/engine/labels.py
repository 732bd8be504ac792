"""Labels that several rules share."""

from typing import TYPE_CHECKING

from advisor.learning import rate_of, rate_shown

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


def adapters(before: "Run", after: "Run", title: str) -> str:
    """``LoRA, r 16, learning rate 2e-5 -> 2e-4``, of long numbers the new one alone; ``title`` where the rate stays."""
    old, new = rate_of(before), rate_of(after)
    if old is None or new is None or old == new or after.lora is None:
        return title
    lead = f"{'QLoRA' if after.adapter == 'qlora' else 'LoRA'}, r {after.lora.rank}, learning rate"
    full = f"{lead} {rate_shown(old)} -> {rate_shown(new)}"
    return full if len(full) <= LONGEST else f"{lead} {rate_shown(new)}"
