"""Experts that are modules, through which a loop sends their tokens one after the other, as before transformers 5.

models/mixtral/modeling_mixtral.py, MixtralSparseMoeBlock.forward@4.48.1; models/deepseek_v3/modeling_deepseek_v3.py,
DeepseekV3MoE.moe@4.57.1. What one expert holds is counted as if tokens were spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.lora_targets import stacked

if TYPE_CHECKING:
    from advisor.memory.activations.dtypes import Numbers
    from advisor.models.blocks import Mlp
    from advisor.run import Run

INNER, ROUTED = "f of one", "routed of one"
"""What one expert gets of a token, spread evenly."""


def loops(run: Run) -> bool:
    """Whether the experts' modules are called in turn, each with the tokens that chose it."""
    model = run.model
    if model is None or run.linear_experts or stacked(run):
        return False
    return bool(model.family.expert_linears) and not model.variant.every_expert


def looped_amounts(n: Numbers, mlp: Mlp, *, trained: bool) -> Iterator[Amount]:
    """What all experts keep: gate, its activation and up, outputs, and weighted copies, which ``index_add_`` saves.

    Inputs of linears only for gradients of their weights; of each choice two indices and a weight.
    """
    chosen, width = mlp.experts_per_token, n.inner
    yield from ((3 * chosen * width, "f"), (2 * chosen * width, "routed"), (chosen * (16 + width), ONE))
    if trained:
        yield from ((chosen * n.compute, "routed"), (chosen * n.compute, "f"))


def recomputed_loop(run: Run, n: Numbers, *, trained: bool) -> Iterator[Amount]:
    """A recomputed forward at its last expert, whose weighted output is yet to come, as is the layer's own.

    Names keep the residual and the normed tokens; the sum; of the expert its tokens and the product, unless saved, and
    what is cast between half precision and fp32.
    """
    saves_residual = "rms_norm" in run.liger or n.stream != n.compute
    yield n.normed + (0 if saves_residual else n.stream) - (n.stream if run.reentrant else 0), "h"
    yield -n.inner, ROUTED
    if not trained:
        yield from ((n.normed, "h"), (n.inner, ROUTED), (n.inner, INNER))
    if n.inner != n.compute:
        yield from ((n.compute - n.inner, ROUTED), (n.compute, INNER))


def looped_gradients(n: Numbers) -> Iterator[Amount]:
    """Backward at the first expert's product: gradients of it, of activation and up; its outputs are freed."""
    yield from ((3 * n.inner, INNER), (-2 * n.inner, ROUTED))


def passing_loop(n: Numbers) -> Iterator[Amount]:
    """Without gradients: the sum of all outputs, and of one expert its tokens, gate, activation, up and product."""
    yield from ((n.inner, "h"), (n.inner, ROUTED), (4 * n.inner, INNER))
