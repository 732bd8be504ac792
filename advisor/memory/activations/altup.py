"""AltUp: a residual stream several streams wide, of which a layer computes one and corrects all.

models/gemma3n/modeling_gemma3n.py, Gemma3nTextAltUp and Gemma3nTextDecoderLayer.forward@5.16.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.norms import rms_amounts
from advisor.models.deviations import Norm

if TYPE_CHECKING:
    from advisor.models.architecture import Block


def streams(block: Block) -> int:
    """How many residual streams a layer gets and gives: one but for AltUp."""
    return next((linear.n_out for linear in block.linears if linear.name == "modality_router"), 1)


def altup_amounts(n: Numbers, norm: Norm, block: Block) -> Iterator[Amount]:
    """What prediction and correction keep, without the inputs of their linears.

    All streams for the product with their coefficients, the innovation once for each stream; the router's norm, tanh
    and coefficients twice; the norm of the low-rank branch; and what the trained scale multiplies.
    """
    count = streams(block)
    if count == 1:
        return
    yield 2 * count * n.stream, "h"
    for _ in range(3):
        yield from rms_amounts(n, norm, "h", ONE)
    yield 8 * count + n.compute * (count * count + count), ONE
    if n.trained:
        yield n.stream, "h"


def altup_gradients(n: Numbers, block: Block) -> Iterator[Amount]:
    """The backward at its start: gradients of all streams twice, and twice of those that an output is added to."""
    count = streams(block)
    if count > 1:
        yield n.stream * (4 * count - 2), "h"
