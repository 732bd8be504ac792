"""DDP: weights are sent once, and buckets hold every gradient a second time.

torch/nn/parallel/distributed.py; torch/csrc/distributed/c10d/reducer.cpp and comm.cpp@2.13.0. Buffers and the order of
gradients, which it sends too, are a few kilobytes that live for a moment.
"""

from __future__ import annotations

from collections import deque
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from advisor.record import record, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.layers.decoder import Model
    from advisor.allocations.layers.loading import Loader
    from advisor.run import Run

    Piece = tuple[int, list[Tensor]]
    """The place of its first tensor, and its tensors."""

SENT_BYTES = 250 << 20
"""DistributedDataParallel.broadcast_bucket_size."""
SENT_AT_ONCE = 2
"""comm.cpp, broadcast_coalesced."""
FIRST_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
"""The least bytes of the bucket that is full first, and of the others."""


@record
class Buckets:
    """How gradients are put into buckets; that unused ones are looked for, once and for all."""

    first: int = FIRST_BYTES
    others: int = BUCKET_BYTES
    finds_unused: bool = False


def buckets_of(run: Run) -> Buckets:
    """As axolotl hands them on: axolotl/core/builders/causal.py:226-268@0.19.0."""
    finds_unused = bool(run.config.get("ddp_find_unused_parameters"))
    match run.config.get("ddp_bucket_cap_mb"):
        case int(mebibytes) if mebibytes:
            return Buckets(mebibytes << 20, mebibytes << 20, finds_unused)
        case _:
            return Buckets(finds_unused=finds_unused)


class Reducer:
    """What DDP holds of gradients: first one bucket, and after a backward many, in the order in which it had them.

    Where it looks for unused ones there are many at once, in the order of the weights from the last.
    """

    def __init__(self, tape: Tape, weights: Sequence[Tensor], packed: Sequence[Tensor], kind: Buckets) -> None:
        """``packed``: weights that bitsandbytes has quantized."""
        self.tape, self.kind = tape, kind
        trained = [one for one in weights if one.trained]
        send(tape, [*(one for one in weights if not one.trained), *packed, *trained])
        limits = (kind.first, kind.others) if kind.finds_unused else (inf, inf)
        self.buckets = self.made(reversed(in_order(pieces(trained, *limits))))
        self.not_ready: set[Tensor] = set() if kind.finds_unused else set(trained)
        self.ready: list[Tensor] = []

    def made(self, groups: Iterable[Piece]) -> list[Tensor]:
        """Buckets for the gradients of some weights each."""
        self.tape.part = "buckets"
        return [joined(self.tape, some) for _, some in groups]

    def enter_forward(self) -> None:
        """Makes the buckets that stay, as soon as the order of gradients is known."""
        if self.ready:
            self.buckets.clear()
            self.buckets = self.made(pieces(self.ready, self.kind.first, self.kind.others))
            self.ready, self.tape.accumulated = [], None

    def enter_backward(self, *, reduces: bool) -> None:
        """Watches in which order gradients come, in the first backward that reduces them."""
        if reduces and self.not_ready:
            self.tape.accumulated = self.note

    def note(self, weight: Tensor) -> None:
        """A leaf has got its gradient; of those that are no weights DDP knows nothing."""
        if weight in self.not_ready:
            self.not_ready.remove(weight)
            self.ready.append(weight)


def replicated(tape: Tape, loader: Loader, model: Model, kind: Buckets) -> tuple[Model, Reducer]:
    """The model under DDP, and what reduces its gradients."""
    reducer = Reducer(tape, loader.weights, loader.packed, kind)
    return replace(model, hands_out_copies=kind.finds_unused), reducer


def send(tape: Tape, weights: Sequence[Tensor]) -> None:
    """Copies weights of one width, one behind the other, and sends the copy; a weight of its own goes as it is."""
    tape.part = "load"
    on_the_way: deque[Tensor | None] = deque()
    for _, some in in_order(pieces(weights, SENT_BYTES, SENT_BYTES)):
        if len(on_the_way) == SENT_AT_ONCE:
            on_the_way.popleft()
        on_the_way.append(joined(tape, some) if len(some) > 1 else None)
    while on_the_way:
        on_the_way.popleft()


def joined(tape: Tape, some: Sequence[Tensor]) -> Tensor:
    """Memory for all of some tensors."""
    return tape.new(sum(one.count for one in some), some[0].width)


def pieces(tensors: Iterable[Tensor], first: float, others: float) -> list[Piece]:
    """Tensors of one width in pieces of so many bytes and more: compute_bucket_assignment_by_size."""
    filling: dict[int, Piece] = {}
    room: dict[int, float] = {}  # bytes by width, in the order in which widths come
    found: list[Piece] = []
    for index, one in enumerate(tensors):
        filling.setdefault(one.width, (index, []))[1].append(one)
        room[one.width] = room.get(one.width, first) - one.count * one.width
        if room[one.width] <= 0:
            found.append(filling.pop(one.width))
            room[one.width] = others
    # What is left comes as the hash table of their widths has it: the newest first.
    return [*found, *(filling[width] for width in reversed(room) if width in filling)]


def in_order(found: list[Piece]) -> list[Piece]:
    """Pieces in the order of their first tensors."""
    return sorted(found, key=itemgetter(0))
