"""Encoders that sample a table of positions for each image: models/glm4v, models/qwen3_5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Tape, Tensor
from advisor.allocations.autograd.operations import FULL, HALF, LONG, activation, add, autocast, cast
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.shared import Batch, Feed
    from advisor.allocations.vision.vision_tower import Embedded, VisionTower
    from advisor.allocations.vision.visual import RotaryTower


@record(eq=False)
class InterpolatedPositions:
    """A table sampled in fp32: models/glm4v, Glm4vVisionModel.forward, Glm4vVisionEmbeddings.forward@5.16.1."""

    inner: RotaryTower
    norm: Norm
    table: Tensor

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads, and tables of angles."""
        places = self.inner.places(tape, vision_tower)
        hidden = vision_tower.patched(tape)
        hidden = self.norm(tape, hidden)
        tables, kept = self.inner.tables(tape, vision_tower)
        return self.placed(tape, vision_tower, hidden), tables, (places, *kept)

    def placed(self, tape: Tape, vision_tower: VisionTower, hidden: Tensor) -> Tensor:
        """The stream with positions in it."""
        count, width = vision_tower.patches.count, self.table.width
        table = cast(tape, self.table, FULL)
        order = tape.new(count, LONG)
        later = tape.new(count * vision_tower.images, 1)
        images = tape.new(count, LONG)
        del later
        sides = [self.side(tape, count) for _ in range(2)]
        axes = [self.between(tape, count) for _ in range(2)]
        grid = tape.new(2 * count, FULL)
        sampled = tape.new(count * vision_tower.hidden, FULL)
        positions = cast(tape, sampled, width)
        result = add(tape, hidden, positions)
        del table, order, images, sides, axes, grid, sampled, positions
        return result

    def side(self, tape: Tape, count: int) -> Tensor:
        """Along one axis, how many patches the image of each patch has."""
        whole = tape.new(count, LONG)
        result = tape.new(count, FULL)
        del whole
        return result

    def between(self, tape: Tape, count: int) -> Tensor:
        """Where each patch lies on one axis, from -1 to 1."""
        result = tape.new(count, FULL)
        for _ in range(3):
            result = tape.new(count, FULL)
        return result


@record(eq=False)
class Downsampling:
    """Four patches become one by a convolution, whose weight is copied, for they lie as its channels.

    models/glm4v, Glm4vVisionModel.forward@5.16.1; aten/src/ATen/native/cudnn/ConvShared.cpp,
    cudnn_convolution_forward@2.13.0.
    """

    weight: Tensor
    bias: Tensor | None
    width: int
    """Channels that come out of it."""

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """A row for each token."""
        halves = [autocast(tape, one) for one in (self.bias, self.weight, x) if one is not None]
        result = tape.new(x.count * self.width * self.width // self.weight.count, HALF)
        copy = tape.new(self.weight.count, HALF)
        del copy, halves
        return result


@record(eq=False)
class GatedMerger:
    """A linear, a norm and an MLP: models/glm4v, Glm4vVisionPatchMerger.forward@5.16.1."""

    first: Linear
    norm: Norm
    feed: Feed

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:  # noqa: ARG002
        """The features."""
        hidden = self.first(tape, x)
        hidden = activation(tape, self.norm(tape, hidden))
        return self.feed(tape, hidden)
