"""What torch's operations allocate, forwards and backwards: aten, tools/autograd/derivatives.yaml@2.13.0.

Several operations that always follow each other are one here, with their temporaries in torch's order.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.allocations.autograd.autograd import Backward, Node, Tape, Tensor, node_for

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


def alike(tape: Tape, x: Tensor) -> Tensor:
    """What such an operation makes: a tensor of the same size and width."""
    node = node_for(tape, back_alike(tape), x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def laid_out_again(tape: Tape, x: Tensor) -> Tensor:
    """The tensor itself, whose gradient is copied, for it does not lie in memory as the tensor does.

    torch/csrc/autograd/functions/accumulate_grad.h, obeys_layout_contract@2.13.0.
    """
    result = x.detached()
    result.node = node_for(tape, back_alike(tape), x)
    return result


def scaled(tape: Tape, x: Tensor) -> Tensor:
    """A product with a number."""
    return alike(tape, x)


def copied(tape: Tape, x: Tensor) -> Tensor:
    """A clone, whose gradient is handed on."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (given.pop(),)

    node = node_for(tape, back, x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def piece(tape: Tape, x: Tensor, count: int) -> Tensor:
    """A slice: a view, whose gradient is as large as what it was cut from."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(whole, given[0].width),)

    whole = x.count
    node = node_for(tape, back, x)
    result = Tensor(x.storage, count, x.width)
    result.node = node
    return result


def joined(tape: Tape, left: Tensor, right: Tensor) -> Tensor:
    """A concatenation, whose gradients are views."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        storage, width = given[0].storage, given[0].width
        return Tensor(storage, counts[0], width), Tensor(storage, counts[1], width)

    counts = left.count, right.count
    node = node_for(tape, back, left, right)
    result = tape.new(sum(counts), max(left.width, right.width))
    result.node = node
    return result


def all_joined(tape: Tape, parts: Sequence[Tensor]) -> Tensor:
    """A concatenation of tensors of one width, whose gradients are views."""

    def back(_node: Node, given: list[Tensor]) -> list[Tensor]:
        storage, width = given[0].storage, given[0].width
        return [Tensor(storage, count, width) for count in counts]

    counts = [one.count for one in parts]
    node = node_for(tape, back, *parts)
    result = tape.new(sum(counts), parts[0].width)
    result.node = node
    return result


def split(tape: Tape, x: Tensor, counts: Sequence[int]) -> list[Tensor]:
    """Views of all of it, whose gradients are concatenated once the last is there."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        result = tape.new(whole, given[0].width)
        given.clear()
        others.clear()
        return (result,)

    def handed_on(count: int, index: int) -> Tensor:
        def pick(_node: Node, given: list[Tensor]) -> list[Tensor | None]:
            if index == 0:
                return [given.pop()]
            others.append(given.pop())
            return [None]

        result = Tensor(x.storage, count, x.width)
        result.node = node_for(tape, pick, joint) if node is not None else None
        return result

    whole = x.count
    others: list[Tensor] = []
    node = node_for(tape, back, x)
    joint = x.detached()
    joint.node = node
    return [handed_on(count, index) for index, count in enumerate(counts)]


def saving_result(tape: Tape, x: Tensor) -> Tensor:
    """tanh, sigmoid, exponential, softmax or its logarithm, in the width of what it gets."""
    result = alike(tape, x)
    if result.node is not None:
        result.node.keep(tape, result.detached())
    return result


def product(tape: Tape, left: Tensor, right: Tensor) -> Tensor:
    """A product of two tensors of one size; the gradient of the right one is made first."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None, ...]:
        gradient = given[0]
        of_right = tape.new(gradient.count, gradient.width) if node.needs[1] else None
        of_left = tape.new(gradient.count, gradient.width) if node.needs[0] else None
        if left_width != right_width:
            node.drop_unpacked()
        if of_left is not None and of_left.width != left_width:
            of_left = tape.new(of_left.count, left_width)
        if of_right is not None and of_right.width != right_width:
            of_right = tape.new(of_right.count, right_width)
        return of_left, of_right

    left_width, right_width = left.width, right.width
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
    """SiLU or GELU as one kernel: it saves its input, before it computes."""
    node = node_for(tape, back_alike(tape), x)
    if node is not None:
        node.keep(tape, x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def tanh_gelu(tape: Tape, x: Tensor) -> Tensor:
    """NewGELUActivation (transformers/activations.py@5.16.1): autocast runs the power in fp32."""
    half = scaled(tape, x)
    inner = powered(tape, x)
    inner = scaled(tape, inner)
    inner = add(tape, x, inner)
    inner = scaled(tape, inner)
    inner = saving_result(tape, inner)
    inner = copied(tape, inner)
    return product(tape, half, inner)


def powered(tape: Tape, x: Tensor) -> Tensor:
    """A power, which saves its input."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        count, width = given[0].count, given[0].width
        lower, multiplied = tape.new(count, width), tape.new(count, width)
        result = tape.new(count, width)
        del lower, multiplied
        return (result,)

    x = cast(tape, x, FULL) if tape.autocast else x
    node = node_for(tape, back, x)
    if node is not None:
        node.keep(tape, x)
    result = tape.new(x.count, x.width)
    result.node = node
    return result


def squared_relu(tape: Tape, x: Tensor) -> Tensor:
    """ReLUSquaredActivation (transformers/activations.py@5.16.1)."""
    applied = saving_result(tape, x)
    return powered(tape, applied)


def dropped(tape: Tape, x: Tensor) -> Tensor:
    """Dropout: the result and a mask of one byte, which is saved (aten/src/ATen/native/cuda/Dropout.cu)."""
    result = alike(tape, x)
    mask = tape.new(x.count, 1)
    if result.node is not None:
        result.node.keep(tape, mask)
    return result


def matmul(tape: Tape, x: Tensor, weight: Tensor, n_out: int, bias: Tensor | None = None) -> Tensor:
    """``nn.Linear``: the input is saved for a trained weight, the weight for an input that needs a gradient."""

    def back(node: Node, given: list[Tensor]) -> list[Tensor | None]:
        if transposed:
            _in_rows(tape, given)
        results: list[Tensor | None] = [None] * len(sizes)
        for index in (1, 0) if bias is None else (0, 1, 2):
            if index == BIAS:  # the engine sums it, after what hooks gave back is gone
                node.drop_unpacked()
            if node.needs[index]:
                found = results[index] = tape.new(*sizes[index])
                found.reshaped = index < BIAS
        return results

    transposed = tape.transposed == n_out
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


def _in_rows(tape: Tape, given: list[Tensor]) -> None:
    """Copies a gradient whose rows and columns are swapped, as a product wants it."""
    given[0] = tape.new(given[0].count, given[0].width)


def into_zeros(tape: Tape, count: int, width: int) -> Tensor:
    """Zeros that are written into; a dispatch mode, as one that records, has a second tensor written."""
    zeros = tape.new(count, width)
    return zeros if tape.adds_in_place else tape.new(count, width)


def embedded(tape: Tape, weight: Tensor, tokens: int, hidden: int) -> Tensor:
    """Rows of a table; its gradient is as large as the table."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(size, width),)

    size, width = weight.count, weight.width
    node = node_for(tape, back, weight)
    result = tape.new(tokens * hidden, width)
    result.node = node
    return result
