"""Apertus' activation in plain operations, and its two trained numbers: arXiv 2411.13010.

transformers/activations.py, XIELUActivation._xielu_python@5.16.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, HALF, add, cast, product, scaled
from advisor.record import record

if TYPE_CHECKING:
    from collections.abc import Sequence


@record(eq=False)
class Xielu:
    """The activation; autocast gives its numbers, and so what is computed with them, in fp32."""

    positive: Tensor
    negative: Tensor

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """One formula above zero and another below, of which each element takes its own."""
        above = tape.new(x.count, 1)
        squared = product(tape, _by_number(tape, self.positive, x), x)
        line = scaled(tape, x)
        first = add(tape, squared, line)
        del squared, line
        inner = exponential(tape, lowered(tape, x))
        inner = subtracted(tape, inner, x)
        inner = _by_number(tape, self.negative, inner, last=True)
        line = scaled(tape, x)
        second = add(tape, inner, line)
        del inner, line
        return chosen(tape, above, first, second)


def _by_number(tape: Tape, number: Tensor, x: Tensor, *, last: bool = False) -> Tensor:
    """A product with a number that may be trained; the gradient of what stands on the right is made first."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        count, width = given[0].count, given[0].width
        products = tape.new(count, width) if last and trained else None
        of_x = tape.new(count, width) if reaches else None
        products = tape.new(count, width) if trained and not last else products
        node.drop_unpacked()
        of_number = tape.new(1, narrow) if trained else None
        del products
        if of_x is not None and of_x.width != came:
            of_x = tape.new(count, came)
        return of_number, of_x

    trained, reaches, came, narrow = number.requires_grad, x.requires_grad, x.width, number.width
    node = node_for(tape, back, number, x)
    if node is not None and trained:
        node.keep(tape, x)
    result = tape.new(x.count, FULL if tape.autocast else max(x.width, narrow))
    result.node = node
    return result


def lowered(tape: Tape, x: Tensor) -> Tensor:
    """The lesser of each element and a number: both get half the gradient where they are the same."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        count, width = given[0].count, given[0].width
        halved = tape.new(count, width)
        same = tape.new(count, 1)
        result = tape.new(count, width)
        greater = tape.new(count, 1)
        del halved, same, greater
        return (result,)

    node = node_for(tape, back, x)
    if node is not None:
        node.keep(tape, x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def exponential(tape: Tape, x: Tensor) -> Tensor:
    """``expm1``, which saves its result; autocast runs it in fp32."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        count, width = given[0].count, given[0].width
        raised = tape.new(count, width)
        result = tape.new(count, width)
        del raised
        return (result,)

    exact = cast(tape, x, FULL) if tape.autocast else x
    node = node_for(tape, back, exact)
    result = tape.new(exact.count, exact.width)
    if node is not None:
        node.keep(tape, result.detached())
    result.node = node
    return result


def subtracted(tape: Tape, left: Tensor, right: Tensor) -> Tensor:
    """A difference: the right one's gradient is negated."""

    def back(_node: Node, given: list[Tensor]) -> Sequence[Tensor]:
        negated = tape.new(given[0].count, given[0].width)
        if negated.width != came:
            negated = tape.new(negated.count, came)
        return given.pop(), negated

    came = right.width
    node = node_for(tape, back, left, right)
    result = tape.new(left.count, max(left.width, right.width))
    result.node = node
    return result


def chosen(tape: Tape, condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """``where``: each of both gets a gradient of its own, the second one first."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        count, width = given[0].count, given[0].width
        of_second = tape.new(count, width)
        return tape.new(count, width), of_second

    node = node_for(tape, back, first, second)
    if node is not None:
        node.keep(tape, condition)
    result = tape.new(first.count, max(first.width, second.width, HALF))
    result.node = node
    return result
