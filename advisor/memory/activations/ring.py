"""Attention over rows that GPUs share: what passes by in its backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount

if TYPE_CHECKING:
    from advisor.memory.activations.dtypes import Numbers
    from advisor.models.blocks import Attention
    from advisor.run import Run

FP32 = 4
"""Bytes of an element that is summed in fp32."""


def ring_gradients(run: Run, n: Numbers, attention: Attention) -> Iterator[Amount]:
    """Buffers and gradients in the backward of ring attention, of each token that a GPU has.

    Packed rows: the keys and values of one head of the whole row, twice, with their gradients, and this GPU's part of
    those (ring_flash_attn/llama3_flash_attn_varlen.py, llama3_flash_attn_varlen_backward@0.1.8). Else the block's
    gradients, their sums in fp32, and what arrives: keys, values and the sums of their gradients (ring_flash_attn.py,
    ring_flash_attn_backward). Of that, the last sum is there while the next is made of it.
    """
    if run.sample_packing:
        row = 3 * run.context_parallel_size + 1
        yield 2 * row * n.compute * attention.head_dim, ONE
        yield from ((n.compute, symbol) for symbol in ("q", "k", "v"))
        return
    yield n.compute + FP32, "q"
    yield from ((2 * n.compute + 3 * FP32, symbol) for symbol in ("k", "v"))
