"""What the layers of a family do otherwise than Llama's, as far as a tape is concerned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from advisor.memory.reserved.layers import Way
from advisor.memory.reserved.operations import activation, squared_relu, tanh_gelu
from advisor.models.deviations import SQUARED_RELU_GRADIENT, TANH_GELU

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.memory.reserved.autograd import Tape, Tensor
    from advisor.memory.reserved.layers import Order
    from advisor.models import Block
    from advisor.models.deviations import Deviations

SCALED: dict[str, Literal["inside", "outside"]] = {
    "gemma": "inside",
    "gemma2": "inside",
    "gemma3_text": "inside",
    "granite": "outside",
}
"""Families that multiply the embedding's output, in its module (models/gemma3/modeling_gemma3.py,
Gemma3TextScaledWordEmbedding@5.16.1) or after it (models/granite/modeling_granite.py, GraniteModel.forward)."""
BY_KIND = frozenset({"gemma3_text"})
"""Families whose sliding layers have tables of positions of their own: Gemma3TextModel.forward@5.16.1.

Tapes have the layers by their kinds, and so let go of those tables a few layers sooner or later.
"""
WAYS = {
    "phi": Way(joins="both kept"),
    "phi3": Way(joins="each"),
    "stablelm": Way(joins="both kept"),
    "gpt_neox": Way(joins="both", splits=True),
    "gemma3_text": Way(norms="in turn"),
    "hunyuan_v1_dense": Way(norms="after rotation"),
}
"""How attention goes about it where it is not as in Llama."""
OUTPUT_FIRST = frozenset({"phi3"})
"""Families whose attention makes its last projection before the first: Phi3Attention.__init__."""
NORMS_FIRST = frozenset({"gpt_neox"})
"""Families whose layers make their norms first: GPTNeoXLayer.__init__@5.16.1."""


def order_of(block: Block, deviations: Deviations) -> Order:
    """Where the norms of a layer stand."""
    if block.norms == 1:
        return "one norm"
    if block.norms > 2:
        return "around"
    if deviations.post_norm:
        return "after"
    return "parallel" if deviations.parallel else "before"


def activation_of(deviations: Deviations) -> Callable[[Tape, Tensor], Tensor]:
    """The activation of an MLP without a gate."""
    if deviations.activation == TANH_GELU:
        return tanh_gelu
    return squared_relu if deviations.activation_gradient == SQUARED_RELU_GRADIENT else activation
