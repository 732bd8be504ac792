"""Encoders that see images of any shape in one row, and what is theirs alone: models/qwen2_vl, models/qwen2_5_vl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.attention import flash, rotated
from advisor.allocations.autograd.operations import (
    FULL,
    LONG,
    cast,
    laid_out_again,
    product,
    saving_result,
    scaled,
    split,
)
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.shared import Batch
    from advisor.allocations.vision.encoders import Patches
    from advisor.allocations.vision.projectors import TwoLinears
    from advisor.allocations.vision.vision_tower import Embedded, VisionTower
    from advisor.models import Attention


@record(eq=False)
class RotaryTower:
    """Tables of rows and columns: models/qwen2_vl, Qwen2VisionTransformerPretrainedModel.forward@5.16.1."""

    head_dim: int

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads, and tables of angles."""
        places = self.places(tape, vision_tower)
        patched = vision_tower.patched(tape)
        tables, kept = self.tables(tape, vision_tower)
        return patched, tables, (places, *kept)

    def tables(self, tape: Tape, vision_tower: VisionTower) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Cosines and sines, and the angles that they are of."""
        count = vision_tower.patches.count
        half = self.half(tape, vision_tower)
        angles = tape.new(count * self.head_dim, FULL)
        return (tape.new(count * self.head_dim, FULL), tape.new(count * self.head_dim, FULL)), (half, angles)

    def half(self, tape: Tape, vision_tower: VisionTower) -> Tensor:
        """The angles of rows and columns: VisionRotaryEmbedding.forward@5.16.1."""
        return tape.new(vision_tower.patches.count * self.head_dim // 2, FULL)

    def places(self, tape: Tape, vision_tower: VisionTower) -> Tensor:
        """Row and column of each patch, in the order of tokens: vision_utils.py, get_vision_position_ids@5.16.1."""
        count = vision_tower.patches.count // vision_tower.images
        found: list[Tensor] = []
        each: list[Tensor] = []
        for _ in range(vision_tower.images):
            edges = [tape.new(edge, LONG) for edge in vision_tower.sides]
            each.clear()
            for _ in range(2):
                each.append(tape.new(count, LONG))
                del edges[0]
            both = tape.new(2 * count, LONG)
            found.append(tape.new(2 * count, LONG))
            del both
        result = tape.new(2 * count * vision_tower.images, LONG)
        del each
        return result


@record(eq=False)
class RotaryAttention:
    """Attention with one projection, rotated in fp32: models/qwen2_vl, VisionAttention.forward@5.16.1."""

    attention: Attention
    inputs: Linear
    output: Linear
    windowed: bool = False
    """Whether patches see those of their window alone."""

    def __call__(self, tape: Tape, patches: Patches, x: Tensor) -> Tensor:
        """Self attention."""
        whole = laid_out_again(tape, self.inputs(tape, x))
        query, key, value = split(tape, whole, (whole.count // 3,) * 3)
        del whole
        query, key = rotate_in_fp32(tape, query, key, patches.tables)
        pieces = patches.windows if self.windowed else patches.images
        output = flash(tape, patches.rows, patches.length, self.attention, (query, key, value), pieces)
        return self.output(tape, output)


def rotate_in_fp32(tape: Tape, query: Tensor, key: Tensor, tables: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """models/qwen2_vl/modeling_qwen2_vl.py, apply_rotary_pos_emb_vision@5.16.1."""
    width = query.width
    query, key = cast(tape, query, FULL), cast(tape, key, FULL)
    of_query = rotated(tape, query, tables)
    of_key = rotated(tape, key, tables)
    of_query = cast(tape, of_query, width)
    return of_query, cast(tape, of_key, width)


def quick_gelu(tape: Tape, x: Tensor) -> Tensor:
    """QuickGELUActivation (transformers/activations.py@5.16.1)."""
    return product(tape, x, saving_result(tape, scaled(tape, x)))


@record(eq=False)
class PatchMerger:
    """Four patches become one: models/qwen2_vl, PatchMerger.forward@5.16.1."""

    norm: Norm
    linears: TwoLinears

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:
        """The features."""
        normed = self.norm(tape, x)
        return self.linears(tape, vision_tower, normed)
