"""Tensors without contents: what a step allocates, and when autograd lets go of it.

A tensor has a size alone, and its memory is freed when nothing refers to it any more, as in torch. What an operation
saves for backward, in which order gradients are computed, added and handed on, is torch's engine's:
torch/csrc/autograd/engine.cpp, input_buffer.cpp, functions/accumulate_grad.cpp@2.13.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from sys import getrefcount
from typing import Protocol

Event = tuple[int, int]
"""The number of an allocation and its bytes; 0 bytes where it is freed."""
EMPTIED: Event = (0, 0)
"""``torch.cuda.empty_cache``."""
MOST_ALLOCATIONS = 250_000
"""About 5 s of CPU time to record and replay; a micro batch of thousands of rows makes millions."""


class LongTapeError(Exception):
    """A step that allocates more often than is worth a replay."""


class Hooks(Protocol):
    """What is done with saved tensors: torch.autograd.graph.saved_tensors_hooks."""

    def pack(self, tensor: Tensor) -> Packed | Tensor:
        """What is kept in place of a tensor."""
        ...


class Packed(Protocol):
    """Something that stands for a saved tensor."""

    def unpack(self) -> Tensor:
        """The tensor."""
        ...


class Tape:
    """The allocations and frees of a run in their order, and the modes that decide them."""

    def __init__(self, *, adds_in_place: bool = True) -> None:
        self.events: list[Event] = []
        self.parts: list[str] = [""]
        """By the number of an allocation, what part of the run made it."""
        self.part = "load"
        self.marks: list[tuple[str, int]] = []
        self.grad = True
        self.autocast = False
        self.bare = False
        """Whether adapters are off."""
        self.transposed = 0
        """Width of linears whose outputs are read with rows and columns swapped, so that gradients are copied."""
        self.computes_half = True
        """Whether forwards run under autocast."""
        self.casts: dict[Tensor, Tensor] = {}
        """Half-precision copies of trained fp32 weights, which autocast keeps until it ends."""
        self.hooks: Hooks | None = None
        self.accumulated: Callable[[Tensor], None] | None = None
        """Who is told of each leaf that has got its gradient."""
        self.adds_in_place = adds_in_place
        """False under a dispatch mode, such as one that records: then gradients are added into a new tensor."""
        self.nodes = 0

    def new(self, count: int, width: int) -> Tensor:
        """A tensor of ``count`` elements of ``width`` bytes."""
        return Tensor(Storage(self, count * width), count, width)

    def mark(self, name: str) -> None:
        """Says that a phase ends here."""
        self.marks.append((name, len(self.events)))


class Storage:
    """A piece of memory, from its making to when nothing refers to it."""

    __slots__ = ("number", "tape")

    def __init__(self, tape: Tape, size: int) -> None:
        self.tape = tape
        self.number = len(tape.parts)
        tape.parts.append(tape.part)
        tape.events.append((self.number, size))
        if self.number > MOST_ALLOCATIONS:
            raise LongTapeError(f"more than {MOST_ALLOCATIONS:,} allocations")

    def __del__(self) -> None:
        self.tape.events.append((self.number, 0))


class Tensor:
    """A tensor, or a view of all of one: its memory, and what computed it."""

    __slots__ = ("count", "embedding", "gradient", "node", "reshaped", "storage", "trained", "width")

    def __init__(self, storage: Storage, count: int, width: int, *, trained: bool = False) -> None:
        self.storage, self.count, self.width, self.trained = storage, count, width, trained
        self.node: Node | None = None
        self.gradient: Tensor | None = None
        self.embedding = False
        self.reshaped = False
        """Whether it comes out of a view: nothing is added into such a gradient, it is added into a new tensor."""

    @property
    def requires_grad(self) -> bool:
        """Whether backward reaches it."""
        return self.trained or self.node is not None

    def detached(self, *, trained: bool = False) -> Tensor:
        """The same memory, as a tensor that nothing computed."""
        return Tensor(self.storage, self.count, self.width, trained=trained)


Backward = Callable[["Node", list[Tensor]], Sequence[Tensor | None]]
"""From a node and a list with the gradient of its output, which it may take out, to those of its inputs."""


class Node:
    """One operation in the graph: what it saved, and where its gradients go."""

    __slots__ = ("back", "edges", "held", "needs", "order", "saved")

    def __init__(self, tape: Tape, back: Backward, inputs: Iterable[Tensor]) -> None:
        tape.nodes += 1
        self.order = tape.nodes
        self.back = back
        given = [(tensor.node, tensor) if tensor.requires_grad else None for tensor in inputs]
        self.edges: list[Node | Tensor | None] = [one and (one[0] or one[1]) for one in given]
        self.needs = [one is not None for one in given]
        self.saved: list[Tensor | Packed] = []
        self.held: Tensor | None = None
        """What is kept as an attribute, out of sight of hooks, and as long as the graph."""

    def keep(self, tape: Tape, *tensors: Tensor) -> None:
        """Saves tensors for backward."""
        hooks = tape.hooks
        self.saved += tensors if hooks is None else [hooks.pack(one) for one in tensors]

    def take(self, index: int = 0) -> Tensor:
        """A saved tensor, no longer kept here."""
        one = self.saved.pop(index)
        return one if isinstance(one, Tensor) else one.unpack()

    def drop_unpacked(self) -> None:
        """Lets go of what hooks gave back, which is there once; torch does it before gradients are summed or cast."""
        self.saved = [one for one in self.saved if isinstance(one, Tensor)]

    def unpack(self) -> None:
        """Lets hooks compute what they keep no more; torch does it where an operation first asks."""
        for one in self.saved:
            if not isinstance(one, Tensor):
                one.unpack()
                return


def node_for(tape: Tape, back: Backward, *inputs: Tensor) -> Node | None:
    """A node, where some input needs a gradient and gradients are on."""
    if tape.grad and any(one.requires_grad for one in inputs):
        return Node(tape, back, inputs)
    return None


def backward(tape: Tape, root: Tensor, gradient: Tensor) -> None:
    """Runs the graph from a tensor: the latest operation first, weights as soon as their gradients are complete."""
    assert root.node is not None
    waiting = dependencies(root.node)
    ready: list[tuple[int, Node]] = [(-root.node.order, root.node)]
    buffers: dict[Node | Tensor, Tensor] = {root.node: gradient}
    del gradient, root
    grad, tape.grad = tape.grad, False
    while ready:
        _, node = heappop(ready)
        given = list(run(node, [buffers.pop(node)]))
        node.saved = []
        for index, target in enumerate(node.edges):
            arrived, given[index] = given[index], None
            if target is None:
                arrived = None
                continue
            if arrived is not None:
                add(tape, buffers, target, arrived)
            arrived = None
            waiting[target] -= 1
            if waiting[target] or target not in buffers:
                continue
            if isinstance(target, Node):
                heappush(ready, (-target.order, target))
            else:
                accumulate(target, buffers.pop(target))
                if tape.accumulated is not None:
                    tape.accumulated(target)
    tape.grad = grad


def run(node: Node, gradients: list[Tensor]) -> Sequence[Tensor | None]:
    """The gradients of a node's inputs; that of its output is gone when this returns."""
    node.unpack()
    return node.back(node, gradients)


def dependencies(root: Node) -> dict[Node | Tensor, int]:
    """How many gradients each node and weight will get."""
    found: dict[Node | Tensor, int] = {}
    stack, seen = [root], {root}
    while stack:
        for target in stack.pop().edges:
            if target is None:
                continue
            found[target] = found.get(target, 0) + 1
            if isinstance(target, Node) and target not in seen:
                seen.add(target)
                stack.append(target)
    return found


def add(tape: Tape, buffers: dict[Node | Tensor, Tensor], target: Node | Tensor, arrived: Tensor) -> None:
    """Adds a gradient to what has come so far: into it, if it is no view and nothing else refers to it."""
    old = buffers.pop(target, None)
    if old is None:
        buffers[target] = arrived
    elif tape.adds_in_place and not old.reshaped and not shared(old):
        buffers[target] = old
    else:
        buffers[target] = tape.new(max(old.count, arrived.count), old.width)


def shared(tensor: Tensor) -> bool:
    """Whether another tensor has the same memory."""
    return getrefcount(tensor.storage) > ALONE


def references() -> int:
    """What ``getrefcount`` says of memory that one tensor has."""
    tensor = Tape().new(1, 1)
    return getrefcount(tensor.storage)


ALONE = references()


def accumulate(weight: Tensor, arrived: Tensor) -> None:
    """A weight takes its first gradient as it is, and has later ones added to it."""
    if weight.gradient is None:
        weight.gradient = arrived
