"""What a recomputed forward holds at the experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations import routed
from advisor.memory.activations.amounts import Amount, freed
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.feedforward import shared_amounts
from advisor.memory.activations.layer import input_amounts
from advisor.memory.activations.linear_inputs import mlp_input, mlp_output
from advisor.memory.activations.looped import loops
from advisor.memory.activations.recomputed import yet_to_come

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.models.layer_variant import LayerVariant
    from advisor.run import Run


def recomputed_experts(run: Run, n: Numbers, family: LayerVariant, block: Block, narrow: Amount) -> Iterator[Amount]:
    """A recomputed forward at the experts, before what all tokens pass: ``routed.recomputed_product``.

    A name keeps the tokens, where no linear does. A non-reentrant checkpoint computes again when backward has come to
    the activation of what all tokens pass: it has the gradient of the product by then.
    """
    mlp = block.mlp
    assert mlp is not None
    found = list(routed.recomputed_product(run, n, mlp))
    yield from (*found, *freed(shared_amounts(n, family, mlp)))
    if not found or loops(run):
        return
    kept = sum(coefficient for coefficient, _ in input_amounts(run, n, mlp_input(run, n, block)))
    yield (0 if kept else n.normed) - yet_to_come(run, n), "h"
    if not run.reentrant and mlp.shared_width and not family.shared_first:
        yield narrow
        yield from ((site.source, site.symbol) for site in mlp_output(run, n, block))
