"""From pixels to an encoder's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.masks import whether_padded
from advisor.allocations.autograd.operations import FULL, HALF, LONG, add, cast, copied, joined, laid_out_again
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.shared import Batch
    from advisor.allocations.vision.vision_tower import Embedded, VisionTower


@record(eq=False)
class WithClass:
    """A token of the class before the patches: models/internvl, InternVLVisionEmbeddings.forward@5.16.1."""

    token: Tensor
    positions: Tensor

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads."""
        embedded = laid_out_again(tape, vision_tower.patched(tape))
        token = _class_tokens(self.token, vision_tower.patches.rows)
        whole = joined(tape, token, cast(tape, embedded, token.width))
        return add(tape, whole, self.positions), (), ()


@record(eq=False)
class WithPositions:
    """Positions out of a table: models/siglip, SiglipVisionEmbeddings.forward@5.16.1."""

    table: Tensor

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:
        """What the first layer reads."""
        embedded = vision_tower.patched(tape)
        if not vision_tower.transposes(batch):
            embedded = laid_out_again(tape, embedded)
        return add(tape, embedded, tape.new(self.table.count, self.table.width)), (), ()


@record(eq=False)
class WithResized:
    """Positions resized for each tile: models/siglip2, Siglip2VisionEmbeddings.forward, Siglip2VisionModel@5.16.1."""

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads."""
        embedded = vision_tower.patched(tape)
        positions = tape.new(embedded.count, HALF)
        one: Tensor | None = None
        for _ in range(vision_tower.patches.rows):
            one = tape.new(vision_tower.patches.length * vision_tower.hidden, HALF)
        del one
        hidden = add(tape, embedded, positions)
        del positions, embedded
        whether_padded(tape, vision_tower.patches.count)
        return hidden, (), ()


@record(eq=False)
class Rotating:
    """Images of any shape in one row, and tables of their positions: models/pixtral, PixtralVisionModel@5.16.1."""

    norm: Norm
    head_dim: int

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:  # noqa: ARG002
        """What the first layer reads."""
        patched = vision_tower.patched(tape)
        whole = copied(tape, laid_out_again(tape, patched))
        hidden = self.norm(tape, whole)
        del whole
        count = vision_tower.patches.count
        places = tape.new(count, LONG)
        angles = [tape.new(count * self.head_dim, FULL) for _ in range(3)]
        tables = [cast(tape, one, hidden.width) for one in angles[1:]]
        return hidden, (*tables, places), (patched,)


@record(eq=False)
class WithFound:
    """Positions out of a table, but for what counts them: models/smolvlm, SmolVLMVisionEmbeddings.forward@5.16.1."""

    def __call__(self, tape: Tape, vision_tower: VisionTower, batch: Batch) -> Embedded:
        """What the first layer reads."""
        convolved = vision_tower.convolve(tape)
        places = tape.new(vision_tower.patches.count, LONG)
        hidden = add(tape, convolved, tape.new(convolved.count, vision_tower.convolution[0].width))
        del convolved, places
        hidden.trained = vision_tower.asks_for_gradients
        return hidden if vision_tower.transposes(batch) else laid_out_again(tape, hidden), (), ()


def _class_tokens(token: Tensor, rows: int) -> Tensor:
    """The class token seen by every sequence: a view."""
    seen = token.detached()
    seen.count = token.count * rows
    return seen
