"""Mamba mixers in the kernels of mamba-ssm: what they keep, and what their backward holds.

mamba_ssm/ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn; ops/selective_scan_interface.py,
SelectiveScanFn@2.3.2. Without a package transformers falls back to plain operations, which keep far more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers

if TYPE_CHECKING:
    from advisor.models.blocks import StateSpace
    from advisor.run import Run

MULTIPROCESSORS = 132
"""Of an H100. The backward adds up one part a multiprocessor, so what it holds of them hardly depends on the tokens."""
SCANNED = 2048
"""Tokens between two states that the selective scan writes down: csrc/selective_scan/selective_scan.cpp@2.3.2."""
BLOCK = 32
"""Tokens of the smallest block of the last kernel: ssd_chunk_scan.py, _chunk_scan_bwd_ddAcs_stable@2.3.2."""


def state_space_amounts(run: Run, n: Numbers, one: StateSpace) -> Iterator[Amount]:
    """What a mixer keeps, without the inputs of its linears."""
    if one.chunk:
        yield from fused_amounts(n, one)
        yield from _unfused_amounts(n, one) if in_pieces(run) else ()
    else:
        yield from _selective_amounts(n, one)


def fused_amounts(n: Numbers, one: StateSpace) -> Iterator[Amount]:
    """Mamba-2: what the first projection gave, the scan's output, and a root a group; all else is computed again."""
    yield n.compute * (projected(one) + one.width), ONE
    yield (4 * one.groups if one.normed else 0), ONE


def in_pieces(run: Run) -> bool:
    """Whether Mamba-2's last projection is quantized, which the fused kernel cannot multiply by.

    axolotl/monkeypatch/models/nemotron_h/modeling.py:37-67@0.19.0: convolution, scan and norm are then called apart.
    """
    return run.quantization in {"nf4", "int8"} and run.model is not None and not run.model.family.whole_linears


def _unfused_amounts(n: Numbers, one: StateSpace) -> Iterator[Amount]:
    """What the pieces keep in addition: the convolution, steps and their sums, and in fp32 all that the norm computes.

    models/zamba2/modeling_zamba2.py, Zamba2RMSNormGated.forward@5.16.1: output, gate, its activation, their product.
    """
    yield n.compute * channels(one) + 8 * one.heads + 16 * one.width, ONE


def _selective_amounts(n: Numbers, one: StateSpace) -> Iterator[Amount]:
    """Mamba: both halves of the first projection, and what the scan reads, in order of the row, and gives.

    Steps, B and C come out of one projection, and Jamba norms each.
    """
    yield 6 * n.compute * one.width + 8 * one.state * one.width // SCANNED, ONE
    yield 2 * n.compute * one.state, ONE
    if one.normed:
        yield (4 + (n.compute if n.trained else 0)) * (one.rank + 2 * one.state) + 12, ONE


def fixed_state_bytes(n: Numbers, one: StateSpace) -> int:
    """The decays of Mamba's states in fp32, and their exponential where they are trained."""
    return 0 if one.chunk else (8 if n.trained else 4) * one.width * one.state


def projected(one: StateSpace) -> int:
    """Elements per token of what Mamba-2's first projection gives: gate, channels of the convolution, steps."""
    return one.width + channels(one) + one.heads


def channels(one: StateSpace) -> int:
    """Channels of Mamba-2's convolution: what is scanned, B and C."""
    return one.width + 2 * one.groups * one.state


def scan_gradients(run: Run, n: Numbers, one: StateSpace) -> Iterator[list[Amount]]:
    """The moments of a mixer's backward that can be its widest, without the gradient that it gets."""
    if not one.chunk:
        # Its gradient, in order of the row, and those of channels, steps and gate.
        yield [(5 * n.compute * one.width, ONE)]
        return
    if in_pieces(run):
        # The norm's, in fp32: gradients of root, square, product and both factors.
        yield [(20 * one.width - 4 * one.groups, ONE)]
        return
    # Computed again: the last projection's input and the convolution. Gradients: of that input, of the scan's output,
    # of the convolution, and of all that the first projection gave.
    again = n.compute * ((3 if one.normed else 4) * one.width + 2 * channels(one) + projected(one))
    scores, shared = 4 * one.groups * one.chunk, 4 * one.groups * one.state
    states, parts = one.width * one.state // one.chunk, splits(run, one)
    held = again + 8 * one.heads + scores + 2 * n.compute * states
    yield [(held + 8 * states, ONE)]
    yield [(held + 8 * one.heads + (parts + 2) * shared, ONE)]
    yield [(held + 12 * one.heads + 2 * shared + (parts + 1) * scores, ONE)]
    yield [(held + 16 * one.heads + 2 * shared + scores + 4 * one.heads * -(-one.chunk // BLOCK), ONE)]


def splits(run: Run, one: StateSpace) -> int:
    """Parts of a sum over the heads of a group, so that each multiprocessor has one to add up."""
    rows = max(1, run.tokens // run.sequence_len)
    heads = one.heads // one.groups
    each = max(1, min(heads, -(-rows * -(-run.sequence_len // one.chunk) * one.heads // MULTIPROCESSORS)))
    return -(-heads // each)
