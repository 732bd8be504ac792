"""Layers of encoders of images: attention without positions of its own, and an MLP, between norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from advisor.allocations.autograd.attention import by_head, flash, rotated
from advisor.allocations.autograd.norms import times_weight
from advisor.allocations.autograd.operations import add, laid_out_again
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.shared import Feed
    from advisor.models import Attention


@record(eq=False)
class Patches:
    """Sequences of patches of one length."""

    rows: int
    length: int
    transposed: bool = False
    """Whether gradients of a layer's output lie channel by channel."""
    tables: tuple[Tensor, ...] = ()
    """Cosines and sines of the positions, if queries and keys are rotated."""
    images: int = 0
    """Images in a row, where attention is told where they end."""
    windows: int = 0
    """Likewise, windows of patches that see each other alone."""

    @property
    def count(self) -> int:
        """Patches of all sequences."""
        return self.rows * self.length


class Encode(Protocol):
    """A layer of an encoder."""

    def __call__(self, tape: Tape, patches: Patches, x: Tensor) -> Tensor:
        """What the next layer reads."""
        ...


Mix = Callable[["Tape", "Patches", "Tensor"], "Tensor"]
"""Self attention of patches."""


@record(eq=False)
class Mixing:
    """Attention in which every patch sees all of its sequence: models/siglip, SiglipAttention.forward@5.16.1."""

    attention: Attention
    query: Linear
    key: Linear
    value: Linear
    output: Linear

    def __call__(self, tape: Tape, patches: Patches, x: Tensor) -> Tensor:
        """Self attention."""
        query = self.query(tape, x)
        key = self.key(tape, x)
        value = self.value(tape, x)
        if patches.tables:
            query, key = by_head(tape, query), by_head(tape, key)
            query, key = rotated(tape, query, patches.tables), rotated(tape, key, patches.tables)
        output = flash(tape, patches.rows, patches.length, self.attention, (query, key, value))
        return self.output(tape, output)


@record(eq=False)
class Encoding:
    """A layer with norms before attention and MLP: models/siglip, SiglipEncoderLayer.forward@5.16.1."""

    mixer: Mix
    feed: Feed
    norms: tuple[Norm, Norm]

    def __call__(self, tape: Tape, patches: Patches, x: Tensor) -> Tensor:
        """Attention and MLP, each added to what came in."""
        residual = x
        hidden = self.norms[0](tape, x)
        hidden = self.mixer(tape, patches, hidden)
        hidden = add(tape, residual, self.branch(tape, patches, hidden))
        residual = hidden
        hidden = self.norms[1](tape, hidden)
        hidden = self.feed(tape, hidden)
        return add(tape, residual, self.branch(tape, patches, hidden))

    def branch(self, tape: Tape, patches: Patches, x: Tensor) -> Tensor:
        """What a product returned, whose gradient it wants row by row."""
        return laid_out_again(tape, x) if patches.transposed else x


@record(eq=False)
class ScaledEncoding:
    """The same with a weight on each branch: models/internvl, InternVLVisionLayer.forward@5.16.1."""

    mixer: Mixing
    feed: Feed
    norms: tuple[Norm, Norm]
    scales: tuple[Tensor, Tensor]

    def __call__(self, tape: Tape, patches: Patches, x: Tensor) -> Tensor:
        """Attention and MLP, each scaled and added to what came in."""
        attended = self.mixer(tape, patches, self.norms[0](tape, x))
        attended = times_weight(tape, self.scales[0], attended)
        hidden = add(tape, attended, x)
        fed = self.norms[1](tape, hidden)
        fed = self.feed(tape, fed)
        fed = times_weight(tape, self.scales[1], fed)
        return add(tape, fed, hidden)
