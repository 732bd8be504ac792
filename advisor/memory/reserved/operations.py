"""What torch's operations allocate, forwards and backwards: aten, tools/autograd/derivatives.yaml@2.13.0.

Several operations that always follow each other are one here, with their temporaries in torch's order.
"""

from __future__ import annotations

from advisor.memory.reserved.autograd import Backward, Node, Tape, Tensor, node_for

HALF, FULL, LONG = 2, 4, 8
BIAS = 2
"""The last input of a linear: its gradient is a sum, those before are views of a product."""


def cast(tape: Tape, x: Tensor, width: int) -> Tensor:
    """The tensor in another precision; itself, where it has that."""
    if x.width == width:
        return x

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(given[0].count, came),)

    came = x.width
    node = node_for(tape, back, x)
    result = tape.new(x.count, width)
    result.node = node
    return result


def autocast(tape: Tape, x: Tensor) -> Tensor:
    """The tensor as autocast gives it to matrix products; of trained weights the copy is kept: autocast_mode.cpp."""
    if not tape.autocast or x.width == HALF:
        return x
    if not x.trained:
        return cast(tape, x, HALF)
    if x not in tape.casts:
        tape.casts[x] = cast(tape, x, HALF)
    return tape.casts[x]


def add(tape: Tape, left: Tensor, right: Tensor) -> Tensor:
    """A sum. Both get the same gradient; one of lower precision gets a copy."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor | None, ...]:
        gradient = given.pop()
        each: list[Tensor | None] = [None, None]
        for index, width in enumerate(widths):
            if needs[index]:
                same = gradient.width == width
                each[index] = gradient.detached() if same else tape.new(gradient.count, width)
        return tuple(each)

    widths = (left.width, right.width)
    node = node_for(tape, back, left, right)
    needs = node.needs if node else []
    result = tape.new(left.count, max(widths))
    result.node = node
    return result


def back_alike(tape: Tape) -> Backward:
    """Backward of an operation on one tensor whose gradient has the size and width of the one given."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(given[0].count, given[0].width),)

    return back


def scaled(tape: Tape, x: Tensor) -> Tensor:
    """A product with a number."""
    node = node_for(tape, back_alike(tape), x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def copied(tape: Tape, x: Tensor) -> Tensor:
    """A clone, whose gradient is handed on."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (given.pop(),)

    node = node_for(tape, back, x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def product(tape: Tape, left: Tensor, right: Tensor) -> Tensor:
    """A product of two tensors of one size; the gradient of the right one is made first."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None, ...]:
        gradient = given[0]
        of_right = tape.new(gradient.count, gradient.width) if node.needs[1] else None
        of_left = tape.new(gradient.count, gradient.width) if node.needs[0] else None
        return of_left, of_right

    node = node_for(tape, back, left, right)
    if node is not None:
        if node.needs[1]:
            node.keep(tape, left)
        if node.needs[0]:
            node.keep(tape, right)
    result = tape.new(left.count, max(left.width, right.width))
    result.node = node
    return result


def activation(tape: Tape, x: Tensor) -> Tensor:
    """SiLU or GELU as one kernel: it saves its input."""
    node = node_for(tape, back_alike(tape), x)
    if node is not None:
        node.keep(tape, x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def dropped(tape: Tape, x: Tensor) -> Tensor:
    """Dropout: the result and a mask of one byte, which is saved (aten/src/ATen/native/cuda/Dropout.cu)."""
    node = node_for(tape, back_alike(tape), x)
    result = tape.new(x.count, x.width)
    mask = tape.new(x.count, 1)
    if node is not None:
        node.keep(tape, mask)
    result.node = node
    return result


def matmul(tape: Tape, x: Tensor, weight: Tensor, n_out: int, bias: Tensor | None = None) -> Tensor:
    """``nn.Linear``: the input is saved for a trained weight, the weight for an input that needs a gradient."""

    def back(node: Node, _given: list[Tensor]) -> list[Tensor | None]:
        results: list[Tensor | None] = [None] * len(sizes)
        for index in (1, 0) if bias is None else (0, 1, 2):
            if node.needs[index]:
                found = results[index] = tape.new(*sizes[index])
                found.reshaped = index < BIAS
        return results

    bias = None if bias is None else autocast(tape, bias)
    weight = autocast(tape, weight)
    x = autocast(tape, x)
    inputs = (x, weight) if bias is None else (x, weight, bias)
    sizes = [(one.count, one.width) for one in inputs]
    node = node_for(tape, back, *inputs)
    if node is not None:
        if node.needs[1]:
            node.keep(tape, x)
        if node.needs[0]:
            node.keep(tape, weight)
    result = tape.new(x.count * n_out * n_out // weight.count, x.width)
    result.node = node
    return result


def embedded(tape: Tape, weight: Tensor, tokens: int, hidden: int) -> Tensor:
    """Rows of a table; its gradient is as large as the table."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(size, width),)

    size, width = weight.count, weight.width
    node = node_for(tape, back, weight)
    result = tape.new(tokens * hidden, width)
    result.node = node
    return result
