"""From pixels to an encoder's stream, and from there to the decoder's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.reserved.autograd import node_for
from advisor.memory.reserved.operations import activation, add, alike, back_alike, joined, piece
from advisor.record import record

if TYPE_CHECKING:
    from advisor.memory.reserved.autograd import Tape, Tensor
    from advisor.memory.reserved.linears import Linear
    from advisor.memory.reserved.norms import Norm
    from advisor.memory.reserved.sight import Sight


@record(eq=False)
class WithClass:
    """A token of the class before the patches: models/internvl, InternVLVisionEmbeddings.forward@5.16.1."""

    token: Tensor
    positions: Tensor

    def __call__(self, tape: Tape, sight: Sight) -> Tensor:
        """What the first layer reads."""
        patches, rows = sight.patches, sight.patches.rows
        # The gradient of a transposed tensor is copied where it is kept: accumulate_grad.h@2.13.0.
        embedded = handed_back(tape, sight.leaf(tape, rows * (patches.length - 1) * sight.hidden))
        whole = joined(tape, class_tokens(self.token, rows), embedded)
        return add(tape, whole, self.positions)


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


def handed_back(tape: Tape, x: Tensor) -> Tensor:
    """The tensor itself, whose gradient is copied."""
    result = x.detached()
    result.node = node_for(tape, back_alike(tape), x)
    return result
