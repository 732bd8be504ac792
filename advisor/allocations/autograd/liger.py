"""Liger's kernels: liger_kernel 0.8.1. Several write a gradient over what they have read."""

from __future__ import annotations

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL

PROCESSORS = 132
"""Of an H100: rows over which a norm's weight gradient is first summed, one for each multiprocessor."""


def over(memory: Tensor) -> Tensor:
    """A gradient that is written over something, and comes out of a view."""
    gradient = memory.detached()
    gradient.reshaped = True
    return gradient


def rms_norm(tape: Tape, x: Tensor, weight: Tensor, *, in_place: bool) -> Tensor:
    """ops/rms_norm.py, LigerRMSNormFunction: the weight's gradient is computed whether it is asked for or not."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        partial = tape.new(PROCESSORS * size, FULL)
        gradient = over(given.pop() if in_place else tape.new(given[0].count, given[0].width))
        of_weight = tape.new(size, FULL)
        if width != FULL:
            of_weight = tape.new(size, width)
        del partial
        return gradient, of_weight

    size, width = weight.count, weight.width
    node = node_for(tape, back, x, weight)
    result = tape.new(x.count, x.width)
    roots = tape.new(x.count // size, FULL)
    if node is not None:
        node.keep(tape, x, weight, roots)
    result.node = node
    return result


def gated(tape: Tape, gate: Tensor, up: Tensor) -> Tensor:
    """ops/swiglu.py, geglu.py: the gradients are written over gate and up."""

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor, Tensor]:
        return over(node.take()), over(node.take())

    node = node_for(tape, back, gate, up)
    result = tape.new(gate.count, gate.width)
    if node is not None:
        node.keep(tape, gate, up)
    result.node = node
    return result


def rotated(
    tape: Tape, query: Tensor, key: Tensor, tables: tuple[Tensor, ...], *, repeats: bool
) -> tuple[Tensor, Tensor]:
    """ops/rope.py, LigerRopeFunction: both are rotated where they lie, and their gradients too.

    Gradients of keys that were repeated for all heads are laid out by heads first, and copied.
    """

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (given.pop(),)

    def copying(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(given[0].count, given[0].width),)

    results: list[Tensor] = []
    for one, way in ((query, back), (key, copying if repeats else back)):
        result = one.detached()
        result.node = node_for(tape, way, one)
        if result.node is not None:
            result.node.keep(tape, *tables[:2])
        results.append(result)
    return results[0], results[1]
