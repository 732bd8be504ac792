"""What routed experts keep of tokens, and what their backward holds, by what computes them."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dispatched import computed, gpus_met
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.experts import adapted, expert_width
from advisor.memory.activations.looped import looped_amounts, looped_gradients, loops, passing_loop, recomputed_loop
from advisor.memory.lora_targets import adapts_experts, stacked
from advisor.models.layer_variant import LayerVariant
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.blocks import Mlp
    from advisor.run import Run


def routing_amounts(n: Numbers, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """The router: fp32 probabilities, the chosen ones and their sum (models/mixtral/modeling_mixtral.py@5.16.1)."""
    chosen = mlp.experts_per_token
    yield 8 * chosen, ONE
    if family.clamped_experts:
        yield n.compute * chosen, ONE
        return
    yield 4, "experts"
    if family.normed_router:
        yield from ((8 if n.trained else 4, "h"), (4, ONE))
    if family.casts_router and n.trained and n.compute != 4:
        yield (n.compute if n.autocast else 4), "h"
    if family.normalized_routing:
        yield 4 + 4 * chosen, ONE


def expert_amounts(run: Run, n: Numbers, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """What the experts of one layer keep."""
    if family.every_expert:
        yield from _every_expert_amounts(n, mlp)
    elif loops(run):
        yield from looped_amounts(n, mlp, trained=of_experts(run, n).trained)
    elif run.experts == "scattermoe" and stacked(run):
        yield from _scattered_amounts(n, mlp, ceil(gpus_met(run, mlp)))
    else:
        yield from _grouped_amounts(of_experts(run, n), n.compute, family, computed(run, mlp))


def of_experts(run: Run, n: Numbers) -> Numbers:
    """The precision of the experts' products; whether their inputs are kept for their own gradients."""
    linears = not stacked(run) and (run.quantization == "int8" or adapts_experts(run))
    return replace(
        n,
        compute=expert_width(run, n.compute),
        trained=n.trained or bool(adapted(run)) or linears,
    )


def _grouped_amounts(n: Numbers, compute: int, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """Sorted tokens through grouped matrix products: integrations/moe.py, grouped_mm_experts_forward@5.16.1.

    A chosen expert keeps its input (for the weights' gradient), gate and up, the activation, the product, its
    output, and of each choice two permutations, an index, a bit and its weight; gpt-oss also where its bias
    belongs.
    """
    chosen = mlp.experts_per_token
    gates = 6 if family.clamped_experts else 3 if mlp.gated else 1
    indices = 4 if family.clamped_experts and n.trained else 3
    yield chosen * (gates * n.compute + (0 if mlp.gated else family.activation[n.autocast and n.compute != 4])), "f"
    if n.trained:
        yield from ((chosen * n.compute, "routed"), (chosen * n.compute, "f"))
    yield chosen * n.compute, "routed"
    yield chosen * (8 * indices + 1 + (4 if family.fp32_routing else compute)), ONE


def _scattered_amounts(n: Numbers, mlp: Mlp, came: int) -> Iterator[Amount]:
    """ScatterMoE, with an adapter or without: it gathers tokens while it multiplies, and keeps them as they ``came``.

    The input, gate and up, the activation, the product, the outputs before they are summed, their weights and two
    indices a choice: axolotl/integrations/kernels/libs/scattermoe_lora/parallel_linear_lora.py:134-143,
    parallel_experts.py@0.19.0.
    """
    chosen = mlp.experts_per_token
    yield n.compute * came, "routed"
    yield chosen * n.compute * (4 if mlp.gated else 3), "f"
    yield chosen * n.compute, "routed"
    yield chosen * (16 + n.compute), ONE


def _every_expert_amounts(n: Numbers, mlp: Mlp) -> Iterator[Amount]:
    """Llama 4 sends every token through every expert, scaled by its score, which is zero for those not chosen.

    models/llama4/modeling_llama4.py, Llama4TextMoe.forward@5.16.1: copies of the tokens, gate and up, the activation;
    for the weights' gradients also the scaled copies and the product.
    """
    count = mlp.experts
    yield n.compute * count, "h"
    yield 3 * n.compute * count, "f"
    if n.trained:
        yield from ((n.compute * count, "h"), (n.compute * count, "f"))
    yield n.compute, "experts"


def recomputed_product(run: Run, n: Numbers, mlp: Mlp) -> Iterator[Amount]:
    """A recomputed forward at a loop's last expert, or at the second stack of frozen experts without a gate.

    There it has sorted inputs and the product. Autocast squares in fp32, and the grouped product gets a copy; none is
    kept, nor is yet what all tokens pass.
    """
    m, chosen = of_experts(run, n), computed(run, mlp).experts_per_token
    if loops(run) and run.activation_checkpointing:
        yield from recomputed_loop(run, n, trained=m.trained)
        return
    if mlp.gated or m.trained or not run.activation_checkpointing or run.experts != "grouped_mm":
        return
    wide = 4 if n.autocast else m.compute
    yield chosen * (wide + (m.compute if m.compute != wide else 0)), "f"
    yield chosen * n.compute, "routed"


def named_amounts(n: Numbers, mlp: Mlp) -> Iterator[Amount]:
    """What names of the forward keep while the second stack is unpacked: sorted inputs, and the product in fp32.

    integrations/moe.py, grouped_mm_experts_forward@5.16.1.
    """
    yield from ((n.compute * mlp.experts_per_token, "routed"), (4 * mlp.experts_per_token, "f"))


def product_gradients(run: Run, n: Numbers, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """Gradients of product, activation and up of all chosen experts; outputs are freed by then, and the product."""
    if loops(run):
        yield from looped_gradients(n)
        return
    times = mlp.experts if family.every_expert else computed(run, mlp).experts_per_token
    m = of_experts(run, n)
    step = family.activation_gradient
    wide = 3 * m.compute if mlp.gated else step[n.autocast] if step else 2 * m.compute
    yield wide * times, "f"
    scattered = run.experts == "scattermoe" and stacked(run)
    if m.trained or scattered:
        yield -times * m.compute, "f"
    if not family.every_expert:
        yield from ((-times * m.compute, "routed"), (-8 * times, ONE))


def routed_gradients(run: Run, n: Numbers, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """Gradients of the experts' outputs, weighted and put back in order; in fp32 where routing weights are.

    ScatterMoE writes them over the outputs.
    """
    m, chosen = of_experts(run, n), computed(run, mlp).experts_per_token
    if family.every_expert or loops(run) or (run.experts == "scattermoe" and stacked(run)):
        return
    if family.fp32_routing:
        yield from ((chosen * (12 + m.compute), "routed"), (-8 * chosen, ONE))
    else:
        yield 3 * chosen * m.compute, "routed"


def forward_product(run: Run, n: Numbers, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """Without gradients: sorted inputs, gate and up in one tensor, the activation and the product, of each choice."""
    if loops(run):
        yield from passing_loop(n)
        return
    times = mlp.experts if family.every_expert else computed(run, mlp).experts_per_token
    steps = 10 if family.clamped_experts else 4 if mlp.gated else 2
    width = of_experts(run, n).compute
    yield width * times * (2 if family.every_expert else 1), "routed"
    yield width * times * steps, "f"


def forward_output(run: Run, n: Numbers, family: LayerVariant, mlp: Mlp) -> Iterator[Amount]:
    """Without gradients: inputs, outputs, the weighted ones and those in order, wide where routing weights are."""
    if family.every_expert or loops(run):
        return
    width = of_experts(run, n).compute
    steps = 2 * width + 8 if family.fp32_routing else 4 * width
    yield computed(run, mlp).experts_per_token * steps, "routed"
