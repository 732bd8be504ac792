"""Mixers with inner norms or kernels of their own: latent attention from its parts, the others from widths alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.activations.norms import rms_amounts

if TYPE_CHECKING:
    from advisor.models.architecture import Block
    from advisor.run import Run


def mixer_amounts(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """A mixer that is not softmax attention, without the inputs of its linears."""
    if block.attention is not None and block.attention.kind == "latent":
        yield from latent_amounts(run, n, block)
    else:
        yield from width_amounts(n, block)


def latent_amounts(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """Multi-head latent attention: modeling_deepseek_v3.py, DeepseekV3Attention.forward@5.16.1.

    Norms of both low-rank tensors, new queries and keys, and the projection that values are cut from; flash
    kernels get values padded to the width of keys.
    """
    ranks = [x.n_in for x in block.linears if x.kind == "attention" and x.name.endswith("_b_proj")]
    for rank in ranks:
        yield from ((c * (rank if symbol == "rank" else 1), ONE) for c, symbol in rms_amounts(n, "rms", "rank", ONE))
    yield from ((n.compute, "q"), (n.compute, "k"), (4, "heads"))
    if run.attention == "flash":
        yield 2 * n.compute, "k"
        return
    yield n.compute * sum(x.n_out for x in block.linears if x.name == "kv_b_proj"), ONE
    yield n.compute, "out"


def width_amounts(n: Numbers, block: Block) -> Iterator[Amount]:
    """Approximation for linear attention, state spaces and convolutions, which run in kernels of their own.

    What each projection gives is kept twice, before and after convolution, activation or norm; and the
    kernel's result.
    """
    outputs = sum(x.n_out for x in block.linears if x.kind in {"attention", "mixer"} and x.n_out != block.hidden)
    yield 2 * n.compute * outputs, ONE
    yield n.compute, "h"


def projected_width(block: Block) -> int:
    """Elements per token of what all projections of a mixer give: its intermediates, and their gradients."""
    return sum(x.n_out for x in block.linears if x.kind in {"attention", "mixer"})
