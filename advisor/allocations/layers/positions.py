"""Tables of cosines and sines of the positions, as models make them before the first layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from advisor.allocations.autograd.operations import FULL, HALF, LONG
from advisor.allocations.shared import AXES

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.shared import Batch

Axes = Literal["", "apart", "joined", "written over"]
"""What becomes of positions of three axes: ``models.family.Taped``."""


def counted(tape: Tape, count: int, axes: int = 1) -> Tensor:
    """Numbers in order, from another one on."""
    order = tape.new(count, LONG)
    result = tape.new(axes * count, LONG)
    del order
    return result


def rotary_tables(tape: Tape, batch: Batch, width: int, precision: int, axes: Axes) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the positions: LlamaRotaryEmbedding.forward, Qwen2VLRotaryEmbedding.forward@5.16.1.

    Positions of one axis are those of one row.
    """
    places = batch.length if not axes else AXES * batch.tokens
    positions = tape.new(places, FULL)
    frequencies = tape.new(places * width // 2, FULL)
    if axes in {"joined", "written over"}:
        places = batch.tokens
    if axes == "joined":  # Glm4vTextRotaryEmbedding.apply_mrope@5.16.1
        frequencies = tape.new(places * width // 2, FULL)
    angles = tape.new(places * width, FULL)
    found: list[Tensor] = []
    for _ in range(2):
        raw = tape.new(places * width, FULL)
        found.append(tape.new(places * width, FULL))
        del raw
    if precision == FULL:
        return found[0], found[1]
    half = tape.new(places * width, HALF), tape.new(places * width, HALF)
    del positions, frequencies, angles
    return half
