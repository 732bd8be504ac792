"""Which linears of a layer carry a LoRA adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.lora_targets import everywhere, wraps

if TYPE_CHECKING:
    from advisor.models.architecture import Linear
    from advisor.run import Lora


def is_target(lora: Lora, linear: Linear) -> bool:
    """Whether the linear carries an adapter; a router only where it is named."""
    return wraps(lora, linear.path) and not (linear.kind == "router" and everywhere(lora))
