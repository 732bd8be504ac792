"""AltUp: a residual stream several streams wide, of which a layer computes one and corrects all.

models/gemma3n/modeling_gemma3n.py, Gemma3nTextAltUp and Gemma3nTextDecoderLayer.forward@5.16.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.norms import rms_amounts
from advisor.models.layer_variant import NormVariant

if TYPE_CHECKING:
    from advisor.models.blocks import Block


def streams(block: Block) -> int:
    """How many residual streams a layer gets and gives: one but for AltUp."""
    return next((linear.n_out for linear in block.linears if linear.name == "modality_router"), 1)


def altup_amounts(n: Numbers, norm: NormVariant, block: Block) -> Iterator[Amount]:
    """What prediction and correction keep, without the inputs of their linears.

    All streams for the product with their coefficients, the innovation once for each stream; the router's norm, tanh
    and coefficients twice; the norm of the low-rank branch; and what the trained scale multiplies. Norms of fp32
    streams keep one of them without a copy, and so the tensor of all: before and after the prediction.
    """
    count = streams(block)
    if count == 1:
        return
    wide = n.stream > n.compute
    yield count * (n.compute + n.stream) + (2 * (count - 1) * n.stream if wide else 0), "h"
    for _ in range(3):
        yield from (*rms_amounts(n, norm, "h", ONE), (4, ONE))
    yield (11 if wide else 8) * count + n.compute * (count * count + count), ONE
    if n.trained:
        yield n.stream, "h"


def between_streams(n: Numbers, block: Block, *, entered: bool) -> Iterator[Amount]:
    """What the projections to all streams keep and those back, which are scaled to the first one's magnitude.

    Each projected stream, and in fp32 the copy that its power reads and the product that is divided; the last layer's
    output whole. ``entered``: whether the embedding has a gradient, so that the first projections keep theirs.

    models/gemma3n/modeling_gemma3n.py, Gemma3nTextModel.forward@5.16.1.
    """
    count, wide = streams(block), n.stream > n.compute
    if count == 1:
        return
    each = (count - 1) * (n.compute + (2 * n.stream if wide else n.compute))
    scalars = count * (8 if wide else 4)
    yield each + count * n.stream + ((count - 1) * n.compute if n.trained and wide else 0), "h"
    yield scalars, ONE
    if entered:
        yield each + (n.compute if n.trained else 0) + (n.stream if wide else 0), "h"
        yield scalars, ONE


def altup_gradients(n: Numbers, block: Block) -> Iterator[Amount]:
    """The backward at its start: gradients of all streams twice, and twice of those that an output is added to."""
    count = streams(block)
    if count > 1:
        yield n.stream * (4 * count - 2), "h"
