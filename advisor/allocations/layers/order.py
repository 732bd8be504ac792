"""What layers do otherwise than Llama's, as far as a tape is concerned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.operations import activation, squared_relu, tanh_gelu
from advisor.models.layer_variant import SQUARED_RELU, TANH_GELU

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.layers.layers import Order
    from advisor.models import Block
    from advisor.models.layer_variant import LayerVariant


def order_of(block: Block, variant: LayerVariant, *, holds: bool) -> Order:
    """Where the norms of a layer stand."""
    if block.norms == 1:
        return "one norm"
    if block.norms > 2:
        return "around"
    if variant.post_norm:
        return "after"
    if variant.parallel:
        return "parallel"
    return "before, held" if holds else "before"


def activation_of(variant: LayerVariant) -> Callable[[Tape, Tensor], Tensor]:
    """The activation of an MLP without a gate."""
    if variant.activation == TANH_GELU:
        return tanh_gelu
    return squared_relu if variant.activation == SQUARED_RELU else activation
