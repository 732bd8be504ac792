"""The head of a run: one more linear, or the embedding's table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.linears import EightBit, FourBit, Head
from advisor.models.blocks import LinearShape

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tensor
    from advisor.allocations.layers.loading import Loader


def head_of(loader: Loader, embedding: Tensor, biased: bool) -> Head:
    """The last linear, which may be the embedding's table, or quantized."""
    model = loader.model
    module = next((tensor.module for tensor in model.tensors if tensor.kind == "head"), "")
    shape = LinearShape("lm_head", model.hidden_size, model.outputs, "head", module)
    if module and loader.quantizes(shape):
        base = loader.linear(shape, bias=False)
        assert isinstance(base, FourBit | EightBit), "coverage.uncovered_method"
        weight = base.kept[0]
    else:
        base, weight = None, loader.plain(shape.n_in * shape.n_out, module) if module else embedding
    bias = loader.plain(model.outputs, module) if biased else None
    divides = model.variant.scales_residual
    widens = loader.taped.widens_logits
    return Head(shape, weight, bias, base, divides=divides, caps=model.family.soft_capped, widens=widens)
