"""From pixels to an encoder's stream, and from there to the decoder's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.reserved.autograd import node_for
from advisor.memory.reserved.masks import whether_padded
from advisor.memory.reserved.operations import (
    FULL,
    HALF,
    LONG,
    activation,
    add,
    alike,
    cast,
    copied,
    joined,
    laid_out_again,
    matmul,
    piece,
)
from advisor.record import record

if TYPE_CHECKING:
    from advisor.memory.reserved.autograd import Node, Tape, Tensor
    from advisor.memory.reserved.linears import Linear
    from advisor.memory.reserved.mixer import Batch
    from advisor.memory.reserved.norms import Norm
    from advisor.memory.reserved.sight import Embedded, Sight


@record(eq=False)
class WithClass:
    """A token of the class before the patches: models/internvl, InternVLVisionEmbeddings.forward@5.16.1."""

    token: Tensor
    positions: Tensor

    def __call__(self, tape: Tape, sight: Sight, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads."""
        embedded = laid_out_again(tape, sight.patched(tape))
        token = class_tokens(self.token, sight.patches.rows)
        whole = joined(tape, token, cast(tape, embedded, token.width))
        return add(tape, whole, self.positions), (), ()


@record(eq=False)
class WithPositions:
    """Positions out of a table: models/siglip, SiglipVisionEmbeddings.forward@5.16.1."""

    table: Tensor

    def __call__(self, tape: Tape, sight: Sight, batch: Batch) -> Embedded:
        """What the first layer reads."""
        embedded = sight.patched(tape)
        if not sight.turns(batch):
            embedded = laid_out_again(tape, embedded)
        return add(tape, embedded, tape.new(self.table.count, self.table.width)), (), ()


@record(eq=False)
class WithResized:
    """Positions resized for each tile: models/siglip2, Siglip2VisionEmbeddings.forward, Siglip2VisionModel@5.16.1."""

    def __call__(self, tape: Tape, sight: Sight, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads."""
        embedded = sight.patched(tape)
        positions = tape.new(embedded.count, HALF)
        one: Tensor | None = None
        for _ in range(sight.patches.rows):
            one = tape.new(sight.patches.length * sight.hidden, HALF)
        del one
        hidden = add(tape, embedded, positions)
        del positions, embedded
        whether_padded(tape, sight.patches.count)
        return hidden, (), ()


@record(eq=False)
class Unshuffled:
    """Four patches become one, tile by tile: models/lfm2_vl, Lfm2VlModel.get_image_features@5.16.1."""

    norm: Norm
    linears: TwoLinears

    def __call__(self, tape: Tape, sight: Sight, x: Tensor) -> list[Tensor]:
        """The features of each tile."""
        rows = sight.patches.rows
        return [self.tile(tape, sight, piece(tape, x, x.count // rows)) for _ in range(rows)]

    def tile(self, tape: Tape, sight: Sight, x: Tensor) -> Tensor:
        """The features of one."""
        moved = alike(tape, laid_out_again(tape, x))
        moved = self.norm(tape, moved)
        return self.linears(tape, sight, moved)


@record(eq=False)
class Rotating:
    """Images of any shape in one row, and tables of their positions: models/pixtral, PixtralVisionModel@5.16.1."""

    norm: Norm
    head_dim: int

    def __call__(self, tape: Tape, sight: Sight, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads."""
        patched = sight.patched(tape)
        whole = copied(tape, laid_out_again(tape, patched))
        hidden = self.norm(tape, whole)
        del whole
        count = sight.patches.count
        places = tape.new(count, LONG)
        angles = [tape.new(count * self.head_dim, FULL) for _ in range(3)]
        tables = [cast(tape, one, hidden.width) for one in angles[1:]]
        return hidden, (*tables, places), (patched,)


@record(eq=False)
class TwoLinears:
    """models/llava/modeling_llava.py, LlavaMultiModalProjector.forward@5.16.1."""

    first: Linear
    second: Linear

    def __call__(self, tape: Tape, sight: Sight, x: Tensor) -> Tensor:  # noqa: ARG002
        """The features."""
        hidden = self.first(tape, x)
        hidden = activation(tape, hidden)
        return self.second(tape, hidden)


@record(eq=False)
class Merged:
    """Four patches become one: models/mistral3, Mistral3MultiModalProjector, Mistral3PatchMerger.forward@5.16.1."""

    norm: Norm
    merging: Linear
    linears: TwoLinears

    def __call__(self, tape: Tape, sight: Sight, x: Tensor) -> Tensor:
        """The features."""
        hidden = self.norm(tape, x)
        merged = self.merged(tape, sight, hidden)
        del hidden
        return self.linears(tape, sight, merged)

    def merged(self, tape: Tape, sight: Sight, x: Tensor) -> Tensor:
        """Image by image."""
        columns: list[Tensor] = []
        whole = unfolded(tape, x, sight.images, columns)
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
class WithFound:
    """Positions out of a table, but for what counts them: models/smolvlm, SmolVLMVisionEmbeddings.forward@5.16.1."""

    def __call__(self, tape: Tape, sight: Sight, batch: Batch) -> Embedded:
        """What the first layer reads."""
        convolved = sight.convolve(tape)
        places = tape.new(sight.patches.count, LONG)
        hidden = add(tape, convolved, tape.new(convolved.count, sight.convolution[0].width))
        del convolved, places
        hidden.trained = sight.asks_for_gradients
        return hidden if sight.turns(batch) else laid_out_again(tape, hidden), (), ()


@record(eq=False)
class Projected:
    """Nine patches become one: models/smolvlm, SmolVLMConnector.forward@5.16.1."""

    projection: Linear

    def __call__(self, tape: Tape, sight: Sight, x: Tensor) -> Tensor:  # noqa: ARG002
        """The features."""
        shuffled = alike(tape, x)
        shuffled = alike(tape, shuffled)
        return self.projection(tape, shuffled)


@record(eq=False)
class Pooled:
    """Patches are averaged: models/gemma3, SiglipVisionModel.forward, Gemma3MultiModalProjector.forward@5.16.1."""

    norm: Norm
    projection: Tensor
    width: int
    tokens: int
    """Of one image."""

    def __call__(self, tape: Tape, sight: Sight, x: Tensor) -> Tensor:
        """The features."""
        rows = copied(tape, x)
        pooled = averaged(tape, rows, sight.patches.rows * self.tokens * sight.hidden)
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


@record(eq=False)
class Shuffled:
    """Four patches become one: models/internvl, InternVLModel.get_image_features, pixel_shuffle@5.16.1."""

    norm: Norm
    first: Linear
    second: Linear

    def __call__(self, tape: Tape, sight: Sight, x: Tensor) -> Tensor:
        """The features."""
        patches = sight.patches
        kept = piece(tape, x, x.count // patches.length * (patches.length - 1))
        kept = alike(tape, kept)
        kept = alike(tape, kept)
        hidden = self.norm(tape, kept)
        hidden = self.first(tape, hidden)
        hidden = activation(tape, hidden)
        return self.second(tape, hidden)


def class_tokens(token: Tensor, rows: int) -> Tensor:
    """The class token seen by every sequence: a view."""
    seen = token.detached()
    seen.count = token.count * rows
    return seen
