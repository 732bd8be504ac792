"""Mixers with inner norms or kernels of their own; Kimi's delta attention from widths alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.attention import lacks_kernel
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.norms import rms_amounts
from advisor.memory.activations.state_spaces import state_space_amounts

if TYPE_CHECKING:
    from advisor.models.blocks import Attention, Block
    from advisor.run import Run

CHUNK = 64
"""Tokens that the delta rule takes at once."""


def mixer_amounts(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """A mixer that is not softmax attention, without the inputs of its linears."""
    attention = block.attention
    assert attention is not None
    if attention.kind == "latent":
        yield from _latent_amounts(run, n, block)
    elif attention.kind == "conv":
        yield from _convolution_amounts(n)
    elif block.states is not None:
        yield from state_space_amounts(run, n, block.states)
    elif attention.kind == "linear" and attention.state:
        yield from _delta_amounts(run, n, attention)
    else:
        yield from width_amounts(n, block)


def _convolution_amounts(n: Numbers) -> Iterator[Amount]:
    """LFM2's short convolution: two gates and what they gate, the convolution's input, and what it gives.

    models/lfm2/modeling_lfm2.py, Lfm2ShortConv.forward@5.16.1; causal-conv1d keeps its input alone.
    """
    yield 5 * n.compute, "h"


def _delta_amounts(run: Run, n: Numbers, attention: Attention) -> Iterator[Amount]:
    """The gated delta rule: models/qwen3_5/modeling_qwen3_5.py, Qwen3_5GatedDeltaNet.forward@5.16.1.

    The convolution's input; of the rule (fla/ops/gated_delta_rule/chunk.py@0.5.2) normed queries and keys of all value
    heads, a copy of the values, a triangle for each chunk of 64, gates, and five numbers a head; then the gated norm.
    """
    heads, values = attention.heads, attention.value_width
    channels = 2 * attention.key_width + values
    yield n.compute * (channels + values + 2 * heads * attention.state + (CHUNK + 1) * heads), ONE
    yield heads * (16 + (4 if n.trained else 0)), ONE
    if "rms_norm_gated" in run.liger:
        # axolotl/kernels/rms_norm_gated.py, FusedRMSNormGatedFunction.forward@0.19.0: input, gate and one root.
        yield 2 * n.compute * values + 4 * heads, ONE
        return
    yield 12 * values + 4 * heads + n.compute * values * (2 if n.trained else 1), ONE


def _latent_amounts(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """Multi-head latent attention: modeling_deepseek_v3.py, DeepseekV3Attention.forward@5.16.1.

    Norms of both low-rank tensors, new queries and keys, and the projection that values are cut from; flash
    kernels get narrower values padded to the width of keys.
    """
    ranks = [x.n_in for x in block.linears if x.kind == "attention" and x.name.endswith("_b_proj")]
    for rank in ranks:
        yield from ((c * (rank if symbol == "rank" else 1), ONE) for c, symbol in rms_amounts(n, "rms", "rank", ONE))
    attention = block.attention
    assert attention is not None
    if lacks_kernel(run):
        yield from ((4, "q"), (4, "k"), (4, "out"), (4, "heads S"))
        return
    yield from ((n.compute, "q"), (n.compute, "k"), (4, "heads"))
    if run.attention == "flash" and attention.value_width != attention.key_width:
        yield 2 * n.compute, "k"
        return
    yield n.compute * sum(x.n_out for x in block.linears if x.name == "kv_b_proj"), ONE
    yield n.compute, "out"


def width_amounts(n: Numbers, block: Block) -> Iterator[Amount]:
    """Approximation for linear attention in kernels that no formula knows.

    What each projection gives is kept twice, before and after convolution, activation or norm; and the
    kernel's result.
    """
    outputs = sum(x.n_out for x in block.linears if x.kind in {"attention", "mixer"} and x.n_out != block.hidden)
    yield 2 * n.compute * outputs, ONE
    yield n.compute, "h"


def projected_width(block: Block) -> int:
    """Elements per token of what all projections of a mixer give: its intermediates, and their gradients."""
    return sum(x.n_out for x in block.linears if x.kind in {"attention", "mixer"})
