"""Why sharding helps, as the rules that shard or offload say it."""

from typing import TYPE_CHECKING

from advisor.memory import estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.memory import Estimate
    from advisor.run import Run

MOST = 0.5
"""Of the memory that a step gives back."""


def sharing(what: str) -> "Callable[[Run, Run], str]":
    """What each GPU holds its share of; where the logits are most of what it gives back, that they have no copy."""

    def because(before: "Run", after: "Run") -> str:
        if spares_logits(before, after):
            return f"No fp32 copy of the logits is made, and {what} are sharded."
        return f"Each GPU holds its share of {what}."

    return because


def spares_logits(before: "Run", after: "Run") -> bool:
    """Whether autocast's copy is most of what goes: an engine of its own has none (``memory.loss.returned``)."""
    if not before.autocast or after.autocast:
        return False
    old, new = estimate(before), estimate(after)
    if old is None or new is None:
        return False
    return 0 < MOST * (old.allocated_peak - new.allocated_peak) < _of_loss(old) - _of_loss(new)


def _of_loss(found: "Estimate") -> int:
    """Bytes of the loss at the peak."""
    return sum(term.bytes for term in found.peak.terms if term.part == "loss")
