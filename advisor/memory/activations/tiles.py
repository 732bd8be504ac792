"""Which MLPs pass their tokens tile by tile, and what they keep: axolotl's ``tiled_mlp``.

The MLP's forward runs without gradients and keeps its input alone; its backward computes each tile again, and goes
through it before the next: axolotl/monkeypatch/tiled_mlp/base.py, TiledMLP@0.19.0;
deepspeed/runtime/sequence_parallel/ulysses_sp.py, TiledMLP@0.18.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.amounts import Amount
from advisor.memory.activations.lora_kernels import fuses_mlp

if TYPE_CHECKING:
    from advisor.memory.activations.dtypes import Numbers
    from advisor.models.blocks import Block
    from advisor.run import Run

TILE = 32768
"""Tokens of a tile where the config does not count tiles: axolotl/monkeypatch/tiled_mlp/patch.py:67-74@0.19.0."""


def tiles(run: Run, block: Block) -> int:
    """Into how many tiles a layer cuts the rows of its MLP; 0 where the MLP is as it was.

    The patch is one of a class, which a forward of one instance hides: axolotl's kernel for adapters
    (axolotl/monkeypatch/lora_kernels.py:636-638@0.19.0). Experts are no MLP of that class, and a traced layer is as
    transformers has it.
    """
    shards = run.tiled_mlp_shards
    if shards is None or block.mlp is None or block.mlp.experts or block.traces or fuses_mlp(run, block):
        return 0
    return shards or -(-row_tokens(run) // TILE)


def row_tokens(run: Run) -> int:
    """Tokens of a row on one GPU, as the MLP gets it: packed rows of a micro-batch come as one."""
    return run.tokens if run.sample_packing else -(-run.sequence_len // run.context_parallel_size)


def tile_tokens(run: Run, block: Block) -> int:
    """Tokens of the first tile, which none is longer than: ``torch.chunk`` rounds up."""
    rows, row = run.tokens // row_tokens(run), row_tokens(run)
    return rows * -(-row // max(1, tiles(run, block)))


def tiled_input(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """The one tensor that a tiled MLP keeps, as it comes: its input, unless attention reads and keeps that too."""
    if not tiles(run, block):
        return
    shared = block.norms == 1 and block.attention is not None
    if not (shared and n.trained and n.normed == n.compute):
        yield n.normed, "h"
