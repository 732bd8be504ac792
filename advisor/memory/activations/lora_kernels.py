"""axolotl's fused LoRA kernels: which adapters they take over, and what they keep and hold instead of PEFT.

One autograd function computes queries, keys and values, one the output projection, one the whole MLP: base and
adapter together, with one dropout mask for what one of them reads (axolotl/kernels/lora.py@0.19.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import Amount, Moment, total
from advisor.memory.activations.dtypes import adapters
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.lora_targets import is_target, rank_at
from advisor.run.axolotl.lora_kernels import stops

if TYPE_CHECKING:
    from advisor.memory.activations.dtypes import Numbers
    from advisor.memory.activations.site import Site
    from advisor.models.architecture import Architecture
    from advisor.models.blocks import Block, LinearShape
    from advisor.run import Lora, Run

ATTENTION = {"qkv": {"q_proj", "k_proj", "v_proj"}, "o": {"o_proj"}}
MLP = {"gate_proj", "up_proj", "down_proj"}
READERS = (*ATTENTION.values(), MLP - {"down_proj"})
"""Linears that read one tensor in one kernel; what ``down_proj`` reads is recomputed in backward."""
HOMES = dict.fromkeys(MLP, "mlp") | dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), "self_attn")
"""Where in a layer the kernels look for a linear."""


@lru_cache(maxsize=16)
def fused(run: Run, block: Block) -> frozenset[str]:
    """Names of a layer's linears that the kernels compute: axolotl/monkeypatch/lora_kernels.py:536-640@0.19.0.

    Left out: linear attention, which they compute in part.
    """
    lora = run.lora
    if lora is None or not lora.kernels or (stops(run) and lora.kernels & ATTENTION.keys()):
        return frozenset()
    linears = {linear.name: linear for linear in block.linears if _is_home(linear)}
    wanted = [names for kernel, names in ATTENTION.items() if kernel in lora.kernels and attends(block, linears)]
    if "mlp" in lora.kernels and block.mlp is not None and not block.mlp.experts and linears.keys() >= MLP:
        wanted.append(MLP)
    present = [names & linears.keys() for names in wanted]
    return frozenset(name for names in present if all(is_target(lora, linears[n]) for n in names) for name in names)


def fuses_mlp(run: Run, block: Block) -> bool:
    """Whether one kernel computes the whole MLP of a layer."""
    return "down_proj" in fused(run, block)


def _is_home(linear: LinearShape) -> bool:
    """Whether a linear lies where the kernels look for it."""
    return linear.name in HOMES and (
        not linear.module or linear.module.endswith(f".{HOMES[linear.name]}.{linear.name}")
    )


def attends(block: Block, linears: dict[str, LinearShape]) -> bool:
    """Whether attention has the projections that the kernels look for; values may be keys (Gemma 4)."""
    softmax = block.attention is not None and block.attention.kind == "softmax"
    return softmax and linears.keys() >= {"q_proj", "k_proj", "o_proj"}


def fused_amounts(lora: Lora, site: Site) -> Iterator[Amount]:
    """What the kernels that read a tensor keep: the tensor, and with dropout what each of them reads, and its mask."""
    names = {linear.name for linear in site.linears} & site.fused
    readers = sum(1 for read in READERS if names & read)
    if readers and not site.kept_anyway:
        yield site.source * site.units, site.symbol
    if lora.dropout > 0:
        yield readers * (site.source + 1) * site.units, site.symbol


def fused_backward_peak_bytes(run: Run, n: Numbers, known: Mapping[str, int], block: Block) -> int:
    """The widest moment of the fused MLP's backward, or of its recomputed forward, without what it keeps."""
    lora, (family, _) = run.lora, family_and_norm(run, block)
    assert lora is not None
    stream = (n.stream + (n.compute if family.scales_residual else 0), "h")
    backward = run.tokens * total([stream, *_mlp_gradients(lora, n)], known) + _half_gradients(run, block)
    again = max(total(moment, known) for moment in _recomputed_mlp(lora, n)) if run.activation_checkpointing else 0
    return max(backward, run.tokens * again)


def _mlp_gradients(lora: Lora, n: Numbers) -> Iterator[Amount]:
    """The MLP's backward at its end: gradients of the product, of both inputs, and of each output times B.

    Those of gate and up are written over gate and up, the product over its gradient (kernels/swiglu.py:118-178@0.19.0).
    With DoRA the gradients of the output, of gate and of up are written again, times its scale, and the old ones stay.
    """
    scaled = n.compute if lora.dora else 0
    yield n.compute + 2 * scaled, "f"
    yield n.compute * (2 if lora.dropout > 0 else 1) + scaled, "h"
    yield 3 * n.compute, "r"


def forward_mlp(lora: Lora, n: Numbers) -> Iterator[Moment]:
    """The MLP's forward at its end: the output, gate and up and their product, and the product times A."""
    if not lora.dora:
        yield [(n.compute, "h"), (3 * n.compute, "f"), (n.compute, "r")]
        return
    kept = [(4 * n.compute, "f"), (n.compute, "h")]
    yield from ([*kept, *passing] for passing in _passing_dora_mlp(n))


def _recomputed_mlp(lora: Lora, n: Numbers) -> Iterator[Moment]:
    """The recomputed MLP: the gradient that waits, the residual, and at its end the product and the output."""
    waiting = (2 * n.stream, "h")
    if not lora.dora:
        yield [waiting, (n.compute, "h"), (n.compute, "f")]
        return
    yield from ([waiting, *passing] for passing in _passing_dora_mlp(n))


def _passing_dora_mlp(n: Numbers) -> Iterator[Moment]:
    """What the MLP's forward holds with DoRA and does not keep: LoRA_MLP.forward, kernels/lora.py:334-412@0.19.0.

    The base's and the adapter's results of gate and up last until it returns, as does the product. It is widest where
    the product is scaled for down's adapter, before down's sum is made, or at its end.
    """
    yield [(6 * n.compute, "f"), (n.compute, "r")]
    yield [(5 * n.compute, "f"), (3 * n.compute, "h")]


def fused_forward_peak_bytes(run: Run, n: Numbers, known: Mapping[str, int]) -> int:
    """What the fused MLP of the last layer's forward holds and does not keep, with the residual; with DoRA alone.

    Without it the backward's moment is wider.
    """
    if run.lora is None or not run.lora.dora:
        return 0
    return run.tokens * max(total([(n.stream, "h"), *passing], known) for passing in _passing_dora_mlp(n))


def _half_gradients(run: Run, block: Block) -> int:
    """Bytes of the MLP adapters' gradients, half precision at first, where the adapters are fp32."""
    if run.precision == "fp32" or adapters(run, 2).weight == 2:
        return 0
    return 2 * adapter_elements(run, block, MLP)


def adapter_elements(run: Run, block: Block, among: set[str] | None = None) -> int:
    """Elements of one layer's adapters that the kernels compute."""
    lora, taken = run.lora, fused(run, block)
    if lora is None:
        return 0
    linears = [x for x in block.linears if x.name in taken and (among is None or x.name in among)]
    return sum(rank_at(lora, x.path) * (x.n_in + x.n_out) for x in linears)


def all_adapter_elements(run: Run, model: Architecture) -> int:
    """Elements of all layers' adapters that the kernels compute."""
    return sum(adapter_elements(run, block) * block.count for block in model.blocks)
