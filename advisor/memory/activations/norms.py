"""What norms keep, without their outputs, which are the inputs of linears."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.models.layer_variant import LayerVariant, NormVariant

if TYPE_CHECKING:
    from advisor.models.blocks import Block


def norm_amounts(n: Numbers, norm: NormVariant, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """The norms over the residual stream of one layer."""
    for index in range(block.norms if block.norm != "none" else 0):
        match norm:
            case "liger" if block.norm == "layer":
                yield from ((n.stream, "h"), (8, ONE))
            case "rms" | "fp32 rms" | "offset rms" | "liger":
                yield from rms_amounts(n, norm, "h", ONE)
                yield from powered(family, ONE)
            case "centred":
                yield from _centred_amounts(n)
            case _:
                yield from layer_norm_amounts(n, norm, shared=family.parallel and index > 0)


def rms_amounts(n: Numbers, norm: NormVariant, symbol: str, groups: str) -> Iterator[Amount]:
    """One RMS norm over ``symbol`` in as many groups a token as ``groups`` says.

    The input in fp32, one inverse root a group, and for the weight's gradient the normed input
    (models/llama/modeling_llama.py, LlamaRMSNorm.forward@5.16.1).
    """
    if norm == "liger":
        # The input as it comes: liger_kernel/ops/rms_norm.py, LigerRMSNormFunction.forward@0.8.1.
        yield from ((n.stream, symbol), (4, groups))
        return
    yield from ((4, symbol), (4, groups))
    if n.trained:
        yield (n.normed if norm == "rms" else 4), symbol


def powered(family: LayerVariant, groups: str) -> Iterator[Amount]:
    """What a root that is a power keeps besides itself."""
    if family.root_by_power:
        yield 4, groups


def layer_norm_amounts(n: Numbers, norm: NormVariant, shared: bool) -> Iterator[Amount]:
    """One layer norm: its input, and fp32 mean and inverse deviation.

    aten/src/ATen/native/cuda/layer_norm_kernel.cu.

    Without autocast a second norm over the same stream finds its input kept already.
    """
    width = {"layer": n.normed, "fp32 layer": 4, "half layer": n.compute}.get(norm, n.stream)
    if not (shared and width == n.stream):
        yield width, "h"
    yield 8, ONE


def _centred_amounts(n: Numbers) -> Iterator[Amount]:
    """Cohere's layer norm keeps the centred input twice: modeling_cohere.py, CohereLayerNorm.forward@5.16.1."""
    yield from ((8, "h"), (4, ONE))
    if n.trained:
        yield 4, "h"
