"""Experts that are spread over GPUs: where a token goes, and what is computed for it there."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from advisor.memory.activations.looped import loops
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.blocks import Block, Mlp
    from advisor.run import Run


def gpus_met(run: Run, mlp: Mlp) -> float:
    """GPUs that a token goes to, once to each that has one of its experts: those that a random choice meets.

    As many tokens reach each GPU for every one that it sends, if experts are chosen evenly.
    """
    ranks = run.expert_parallel_size
    return ranks * (1 - (1 - 1 / ranks) ** max(1, mlp.experts_per_token))


def computed(run: Run, mlp: Mlp) -> Mlp:
    """The experts of a layer, with as many choices as a GPU computes for each token of its own.

    Grouped products know no choice of another GPU: axolotl hands it to the first expert with weight 0, so every
    choice of a token is computed on every GPU that it goes to. The loop, ScatterMoE and SonicMoE leave them out
    (axolotl/integrations/expert_parallel/experts_fn.py:88-174@0.19.0).
    """
    if run.expert_parallel_size == 1 or not mlp.experts or run.experts != "grouped_mm" or loops(run):
        return mlp
    return replace(mlp, experts_per_token=ceil(mlp.experts_per_token * gpus_met(run, mlp)))


def with_computed(run: Run, block: Block) -> Block:
    """A layer with such experts."""
    return block if block.mlp is None else replace(block, mlp=computed(run, block.mlp))
