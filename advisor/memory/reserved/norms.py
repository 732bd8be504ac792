"""RMS norms in plain operations: models/llama/modeling_llama.py, LlamaRMSNorm.forward@5.16.1."""

from __future__ import annotations

from advisor.memory.reserved.autograd import Node, Tape, Tensor, node_for
from advisor.memory.reserved.operations import FULL, cast


def rms_norm(tape: Tape, x: Tensor, weight: Tensor) -> Tensor:
    """Over rows as wide as the weight, in fp32; returned in the input's precision, or the weight's if that is wider."""
    wide = cast(tape, x, FULL)
    variance, root = inverse_root(tape, wide, x.count // weight.count)
    normed = by_row(tape, wide, root)
    del wide, root
    half = cast(tape, normed, x.width)
    result = weighted(tape, weight, half)
    del variance, normed
    return result


def inverse_root(tape: Tape, x: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """The mean of the squares, and one over its root."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor]:
        cubed, halved = tape.new(rows, FULL), tape.new(rows, FULL)
        of_mean = tape.new(rows, FULL)
        del cubed, halved
        given.clear()
        node.take()
        spread = tape.new(count, FULL)
        del of_mean
        power, doubled = tape.new(count, FULL), tape.new(count, FULL)
        of_square = tape.new(count, FULL)
        del power, doubled, spread
        return (of_square,)

    count = x.count
    node = node_for(tape, back, x)
    squares = tape.new(count, FULL)
    variance = tape.new(rows, FULL)
    del squares
    shifted = tape.new(rows, FULL)
    root = tape.new(rows, FULL)
    del shifted
    if node is not None:
        node.keep(tape, root.detached(), x)
    root.node = node
    return variance, root


def by_row(tape: Tape, x: Tensor, factors: Tensor) -> Tensor:
    """Rows times a factor each; the factors' gradient is made first, and summed last."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor, Tensor]:
        of_factors = tape.new(count, FULL)
        of_rows = tape.new(count, FULL)
        summed = tape.new(rows, FULL)
        del of_factors
        return of_rows, summed

    count, rows = x.count, factors.count
    node = node_for(tape, back, x, factors)
    if node is not None:
        node.keep(tape, x, factors)
    result = tape.new(count, FULL)
    result.node = node
    return result


def weighted(tape: Tape, weight: Tensor, x: Tensor) -> Tensor:
    """Rows times a weight."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        count, width = given[0].count, given[0].width
        inner = tape.new(count, width) if reaches else None
        if not trained:
            return inner, None
        whole = tape.new(count, width)
        node.drop_unpacked()
        of_weight = tape.new(size, weight_width)
        del whole
        return inner, of_weight

    reaches, trained, size, weight_width = x.requires_grad, weight.trained, weight.count, weight.width
    node = node_for(tape, back, x, weight)
    if node is not None:
        node.keep(tape, *((x,) if trained else ()), *((weight,) if reaches else ()))
    result = tape.new(x.count, max(x.width, weight.width))
    result.node = node
    return result
