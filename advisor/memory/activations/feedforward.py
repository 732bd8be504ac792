"""What the MLP or the experts keep, without the inputs of their linears."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.lora_kernels import fuses_mlp
from advisor.models.deviations import Deviations

if TYPE_CHECKING:
    from advisor.models.architecture import Block, Mlp
    from advisor.run import Run


def mlp_amounts(run: Run, n: Numbers, family: Deviations, block: Block) -> Iterator[Amount]:
    """The MLP of one layer."""
    mlp = block.mlp
    if mlp is None:
        return
    if not mlp.experts:
        yield from dense_amounts(n, family, mlp, "f", recomputed="glu" in run.liger or fuses_mlp(run, block))
        return
    yield from routing_amounts(n, family, mlp)
    adapted = run.lora is not None and bool(run.lora.target_parameters)
    yield from expert_amounts(replace(n, trained=n.trained or adapted), family, mlp)
    if mlp.shared_width:
        yield from dense_amounts(n, family, mlp, "f shared", recomputed="glu" in run.liger)


def dense_amounts(n: Numbers, family: Deviations, mlp: Mlp, symbol: str, *, recomputed: bool) -> Iterator[Amount]:
    """Gate, its activation and up.

    A kernel of Liger's or axolotl's recomputes the activation (liger_kernel/ops/swiglu.py@0.8.1).
    """
    if mlp.gated:
        yield (2 if recomputed else 3) * n.compute, symbol
        return
    yield n.compute, symbol
    extra = family.activation[n.autocast]
    if extra:
        yield extra, symbol


def routing_amounts(n: Numbers, family: Deviations, mlp: Mlp) -> Iterator[Amount]:
    """The router: fp32 probabilities, the chosen ones and their sum (models/mixtral/modeling_mixtral.py@5.16.1)."""
    chosen = mlp.experts_per_token
    yield 8 * chosen, ONE
    if family.clamped_experts:
        yield n.compute * chosen, ONE
        return
    yield 4, "experts"
    if family.normalized_routing:
        yield 4 + 4 * chosen, ONE


def expert_amounts(n: Numbers, family: Deviations, mlp: Mlp) -> Iterator[Amount]:
    """Sorted tokens through grouped matrix products: integrations/moe.py, grouped_mm_experts_forward@5.16.1.

    A chosen expert keeps its input (for the weights' gradient), gate and up, the activation, the product, its
    output, and of each choice two permutations, an index, a bit and its weight; gpt-oss also where its bias
    belongs.
    """
    chosen = mlp.experts_per_token
    gates = 6 if family.clamped_experts else 3 if mlp.gated else 1
    indices = 4 if family.clamped_experts and n.trained else 3
    yield chosen * gates * n.compute, "f"
    if n.trained:
        yield from ((chosen * n.compute, "h"), (chosen * n.compute, "f"))
    yield chosen * n.compute, "h"
    yield chosen * (8 * indices + 1 + (4 if family.fp32_routing else n.compute)), ONE


def merged_experts(run: Run, n: Numbers, block: Block) -> list[int]:
    """Bytes of stacked experts that PEFT adds to their adapters in each forward, and autograd keeps.

    peft/tuners/lora/layer.py, ParamWrapper and _LoraParameterProxy@0.20.0: the sum is a tensor of its own.
    """
    mlp = block.mlp
    if mlp is None or not mlp.experts or run.lora is None:
        return []
    one = n.compute * mlp.experts * mlp.width * block.hidden
    times = {"gate_up_proj": 2 if mlp.gated else 1, "up_proj": 1, "gate_proj": 1, "down_proj": 1}
    names = [name.rsplit(".", 1)[-1] for name in run.lora.target_parameters]
    return [one * times[name] for name in names if name in times]
