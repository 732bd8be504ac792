"""Gradients of what an MLP's product is made of, at the widest moment of its backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations import routed
from advisor.memory.activations.adapted_output import freed_by_adapters
from advisor.memory.activations.amounts import ONE, Amount, freed
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.experts import used_weights
from advisor.memory.activations.feedforward import of_activation_gradient
from advisor.memory.activations.linear_inputs import mlp_output, site_amounts
from advisor.models.layer_variant import LayerVariant

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.run import Run


def product_gradients(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """Gradients of product, activation and up, after the product itself is freed.

    Liger's kernel writes both gradients over gate and up (liger_kernel/ops/swiglu.py, swiglu_backward@0.8.1).
    """
    mlp = block.mlp
    assert mlp is not None
    if mlp.experts:
        yield from routed.product_gradients(run, n, family, mlp)
        yield -(used_weights(run, n.compute, block) // run.tokens), ONE
        return
    if not mlp.gated:
        step = family.activation_gradient
        yield (of_activation_gradient(n, step) if step else 2 * n.inner), "f"
    elif "glu" in run.liger:
        yield n.inner, "f"
        return
    else:
        yield 3 * n.inner, "f"
    if adapted := list(freed_by_adapters(run, n, block)):
        yield from adapted
    else:
        yield from freed(a for site in mlp_output(run, n, block) for a in site_amounts(run, n, site))
