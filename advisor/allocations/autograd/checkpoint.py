"""Activation checkpointing, both ways: torch/utils/checkpoint.py@2.13.0."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import ref

from advisor.allocations.autograd.autograd import Node, Packed, Tape, Tensor, backward, node_for

if TYPE_CHECKING:
    from collections.abc import Generator

Layer = Callable[[Tensor], Tensor]


@contextmanager
def _recomputing(tape: Tape) -> Generator[None]:
    """Gradients and autocast as they were in forward; copies of weights last as long."""
    grad, autocast, casts = tape.grad, tape.autocast, tape.casts
    tape.grad, tape.autocast, tape.casts = True, tape.computes_half, {}
    try:
        yield
    finally:
        tape.grad, tape.autocast, tape.casts = grad, autocast, casts


def reentrant(tape: Tape, layer: Layer, x: Tensor) -> Tensor:
    """CheckpointFunction: a graph of its own for the recomputed layer, which holds the gradient that came."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None]:
        inner = node.take().detached(trained=True)
        with _recomputing(tape):
            result = layer(inner)
        backward(tape, result, given[0])
        return (inner.gradient,)

    node = node_for(tape, back, x)
    if node is None:
        return layer(x)
    node.keep(tape, x)
    grad, tape.grad = tape.grad, False
    result = layer(x)
    tape.grad = grad
    result.node = node
    return result


class Frame:
    """One layer's saved tensors, which are computed again when backward first asks for one."""

    def __init__(self, tape: Tape, layer: Layer, x: Tensor) -> None:
        self.tape, self.layer, self.x = tape, layer, x
        self.holders: list[ref[_Holder]] = []
        self.done = False

    def pack(self, tensor: Tensor) -> Packed:  # noqa: ARG002
        """A place for the tensor, which itself is let go."""
        holder = _Holder(self)
        self.holders.append(ref(holder))
        return holder

    def recompute(self) -> None:
        """Runs the layer until the last tensor that was saved is there."""
        self.done = True
        hooks, self.tape.hooks = self.tape.hooks, _Filler(self)
        try:
            with _recomputing(self.tape):
                self.layer(self.x)
        except _EnoughError:
            pass
        finally:
            self.tape.hooks = hooks


class _Holder:
    """The place of one saved tensor."""

    __slots__ = ("__weakref__", "frame", "tensor")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.tensor: Tensor | None = None

    def unpack(self) -> Tensor:
        """The tensor, computed again if it is not there."""
        if not self.frame.done:
            self.frame.recompute()
        assert self.tensor is not None
        return self.tensor


class _EnoughError(Exception):
    """All that was saved is there again."""


class _Filler:
    """Puts what the layer saves again into the places of the first time."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.index = frame, 0

    def pack(self, tensor: Tensor) -> Tensor:
        """The tensor itself; the last one ends the layer."""
        holder = self.frame.holders[self.index]()
        self.index += 1
        if holder is not None:
            holder.tensor = tensor.detached()
        if self.index == len(self.frame.holders):
            raise _EnoughError
        return tensor


def _non_reentrant(tape: Tape, layer: Layer, x: Tensor) -> Tensor:
    """Hooks that keep nothing of what the layer saves but its input."""
    if not tape.grad:
        return layer(x)
    hooks, tape.hooks = tape.hooks, Frame(tape, layer, x)
    result = layer(x)
    tape.hooks = hooks
    return result


def straight(_tape: Tape, layer: Layer, x: Tensor) -> Tensor:
    """A layer that keeps what it saves."""
    return layer(x)


PASSES: dict[str, Callable[[Tape, Layer, Tensor], Tensor]] = {
    "": straight,
    "reentrant": reentrant,
    "non-reentrant": _non_reentrant,
}
