"""Positions of three axes for words and images, as the model counts them: models/qwen2_vl, get_rope_index@5.16.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.operations import LONG
from advisor.allocations.layers.positions import counted
from advisor.allocations.shared import AXES
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.shared import Batch


@record(eq=False)
class MRope:
    """The images of a row, all of one size, and as many words before each of them as after the last."""

    images: int
    height: int
    """Tokens along an edge of an image."""
    width: int

    def __call__(self, tape: Tape, batch: Batch) -> Tensor:
        """The positions of all rows."""
        result = tape.new(AXES * batch.tokens, LONG)
        words = max(0, batch.length - self.images * self.height * self.width) // (self.images + 1)
        rows: list[Tensor] = []
        parts: list[Tensor] = []
        image = whole = None
        for _ in range(batch.rows):
            rows.clear()
            rows += [unmasked(tape, batch.length) for _ in range(2)]
            parts = []
            for _ in range(self.images):
                parts.append(_of_words(tape, words))
                image = self.of_image(tape)
                parts.append(image)
            parts.append(_of_words(tape, batch.length - self.images * (words + self.height * self.width)))
            whole = tape.new(AXES * batch.length, LONG)
            put(tape, batch.length)
        del rows, parts, image, whole
        return result

    def of_image(self, tape: Tape) -> Tensor:
        """Those of one image: Qwen2VLModel.get_vision_position_ids@5.16.1."""
        edges = [counted(tape, count) for count in (self.height, self.width)]
        result = tape.new(AXES * self.height * self.width, LONG)
        del edges
        return result


def unmasked(tape: Tape, length: int) -> Tensor:
    """A row by its mask, which leaves nothing out: the places of what is left are found first."""
    mask = tape.new(length, 1)
    places = tape.new(length, LONG)
    result = tape.new(length, LONG)
    del mask, places
    return result


def put(tape: Tape, length: int) -> None:
    """A row's positions put where the mask is set."""
    mask = tape.new(length, 1)
    places = tape.new(length, LONG)
    del mask, places


def _of_words(tape: Tape, count: int) -> Tensor:
    """Positions of words, the same on all axes."""
    return counted(tape, max(0, count), AXES)
