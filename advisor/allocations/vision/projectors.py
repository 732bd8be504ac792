"""From an encoder's stream to the decoder's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import node_for
from advisor.allocations.autograd.operations import activation, alike, cast, copied, laid_out_again, matmul, piece
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Node, Tape, Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.vision.vision_tower import VisionTower


@record(eq=False)
class TwoLinears:
    """models/llava/modeling_llava.py, LlavaMultiModalProjector.forward@5.16.1."""

    first: Linear
    second: Linear

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:  # noqa: ARG002
        """The features."""
        hidden = self.first(tape, x)
        hidden = activation(tape, hidden)
        return self.second(tape, hidden)


@record(eq=False)
class Shuffled:
    """Four patches become one: models/internvl, InternVLModel.get_image_features, pixel_shuffle@5.16.1."""

    norm: Norm
    first: Linear
    second: Linear

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:
        """The features."""
        patches = vision_tower.patches
        kept = piece(tape, x, x.count // patches.length * (patches.length - 1))
        kept = alike(tape, kept)
        kept = alike(tape, kept)
        hidden = self.norm(tape, kept)
        hidden = self.first(tape, hidden)
        hidden = activation(tape, hidden)
        return self.second(tape, hidden)


@record(eq=False)
class Unshuffled:
    """Four patches become one, tile by tile: models/lfm2_vl, Lfm2VlModel.get_image_features@5.16.1."""

    norm: Norm
    linears: TwoLinears

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> list[Tensor]:
        """The features of each tile."""
        rows = vision_tower.patches.rows
        return [self.tile(tape, vision_tower, piece(tape, x, x.count // rows)) for _ in range(rows)]

    def tile(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:
        """The features of one."""
        moved = alike(tape, laid_out_again(tape, x))
        moved = self.norm(tape, moved)
        return self.linears(tape, vision_tower, moved)


@record(eq=False)
class Projected:
    """Nine patches become one: models/smolvlm, SmolVLMConnector.forward@5.16.1."""

    projection: Linear

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:  # noqa: ARG002
        """The features."""
        shuffled = alike(tape, x)
        shuffled = alike(tape, shuffled)
        return self.projection(tape, shuffled)


@record(eq=False)
class Merged:
    """Four patches become one: models/mistral3, Mistral3MultiModalProjector, Mistral3PatchMerger.forward@5.16.1."""

    norm: Norm
    merging: Linear
    linears: TwoLinears

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:
        """The features."""
        hidden = self.norm(tape, x)
        merged = self.merged(tape, vision_tower, hidden)
        del hidden
        return self.linears(tape, vision_tower, merged)

    def merged(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:
        """Image by image."""
        columns: list[Tensor] = []
        whole = unfolded(tape, x, vision_tower.images, columns)
        result = self.merging(tape, whole)
        del whole, columns
        return result


def unfolded(tape: Tape, x: Tensor, images: int, columns: list[Tensor]) -> Tensor:
    """``functional.unfold`` of each image, and all of them in a row: aten/src/ATen/native/cuda/Im2Col.cu@2.13.0."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        found: list[Tensor] = []
        for _ in range(images):
            copy = tape.new(part, width)
            found.append(tape.new(part, width))
            del copy
        given.clear()
        return (tape.new(count, width),)

    count, width, part = x.count, x.width, x.count // images
    node = node_for(tape, back, x)
    for _ in range(images):
        copy = tape.new(part, width)
        columns.append(tape.new(part, width))
        del copy
    result = tape.new(count, width)
    result.node = node
    return result


@record(eq=False)
class Pooled:
    """Patches are averaged: models/gemma3, SiglipVisionModel.forward, Gemma3MultiModalProjector.forward@5.16.1."""

    norm: Norm
    projection: Tensor
    width: int
    tokens: int
    """Of one image."""

    def __call__(self, tape: Tape, vision_tower: VisionTower, x: Tensor) -> Tensor:
        """The features."""
        rows = copied(tape, x)
        pooled = averaged(tape, rows, vision_tower.patches.rows * self.tokens * vision_tower.hidden)
        normed = self.norm(tape, pooled)
        features = matmul(tape, normed, self.projection, self.width)
        return cast(tape, features, x.width)


def averaged(tape: Tape, x: Tensor, count: int) -> Tensor:
    """The mean of squares of patches: ``avg_pool2d``, which keeps its input."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(size, given[0].width),)

    size = x.count
    node = node_for(tape, back, x)
    result = tape.new(count, x.width)
    if node is not None:
        node.keep(tape, x)
    result.node = node
    return result
