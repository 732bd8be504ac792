"""Patches in the order of windows: models/qwen2_5_vl, Qwen2_5_VisionTransformerPretrainedModel.forward@5.16.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.shared import Batch
    from advisor.allocations.vision.vision_tower import Embedded, Join, VisionTower
    from advisor.allocations.vision.visual import RotaryTower

INT = 4


@record(eq=False)
class InWindows:
    """Patches and tables of their places in that order."""

    inner: RotaryTower
    merged: int
    """Patches of a token."""

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads, and tables of angles."""
        count, width = vision_tower.patches.count, self.inner.head_dim
        places = self.inner.places(tape, vision_tower)
        ends = tape.new(vision_tower.patches.windows + 1, INT)
        hidden = vision_tower.patched(tape)
        hidden = reordered(tape, hidden, count // self.merged)
        half = self.inner.half(tape, vision_tower)
        half = reordered(tape, half, count // self.merged)
        angles = tape.new(count * width, FULL)
        tables = tape.new(count * width, FULL), tape.new(count * width, FULL)
        return hidden, tables, (places, half, angles, ends)


@record(eq=False)
class InOrder:
    """Features back in the order of images."""

    inner: Join
    merged: int
    """Patches of a token."""

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:
        """The features."""
        features = self.inner(tape, vision_tower, x)
        assert isinstance(features, Tensor)
        return reordered(tape, features, vision_tower.patches.count // self.merged)


def reordered(tape: Tape, x: Tensor, count: int) -> Tensor:
    """By indices on the host, which go to the GPU for each use; in backward they are sorted.

    aten/src/ATen/native/TensorAdvancedIndexing.cpp, make_info; cuda/Indexing.cu, index_put_with_sort_kernel@2.13.0.
    """

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        result = tape.new(size, width)
        places = [tape.new(count, LONG) for _ in range(3)]
        del places
        return (result,)

    size, width = x.count, x.width
    node = node_for(tape, back, x)
    places = tape.new(count, LONG)
    result = tape.new(size, width)
    del places
    result.node = node
    return result
