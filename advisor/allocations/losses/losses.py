"""The head and the losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, cast, piece, saving_result

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Plain
    from advisor.allocations.shared import Batch

Scored = tuple[Tensor, Tensor]
"""Logits and loss."""


def plain(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> Scored:
    """The logits, and transformers' loss of them."""
    logits = head(tape, hidden)
    return logits, causal(tape, logits, batch.rows, batch.length)


def copying(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> Scored:
    """Likewise before transformers 4.49."""
    logits = head(tape, hidden)
    return logits, shifted(tape, logits, batch.rows, batch.length)


def own(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> Scored:
    """Gemma3ForConditionalGeneration.forward@5.16.1: logits in fp32, and copies of those that are scored.

    The last tokens of one row are left out by a view.
    """
    logits = cast(tape, head(tape, hidden), FULL)
    if batch.rows == 1:
        scored, labels = piece(tape, logits, logits.count // batch.length * (batch.length - 1)), None
    else:
        scored = without_last(tape, logits, batch.length)
        labels = tape.new(batch.rows * (batch.length - 1), LONG)
    loss = summed(tape, negative_log_likelihood(tape, saving_result(tape, scored), labels))
    return logits, loss


def own_masked(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> Scored:
    """The same where the batch has a mask: by it logits and labels are picked, though none is left out."""
    logits = cast(tape, head(tape, hidden), FULL)
    count = batch.rows * (batch.length - 1)
    mask = tape.new(count, 1)
    scored = picked(tape, piece(tape, logits, logits.count // batch.length * (batch.length - 1)), mask)
    of_labels, places = tape.new(count, 1), tape.new(2 * count, LONG)
    labels = tape.new(count, LONG)
    del of_labels, places, mask
    loss = summed(tape, negative_log_likelihood(tape, saving_result(tape, scored), labels))
    return logits, loss


def picked(tape: Tape, x: Tensor, mask: Tensor) -> Tensor:
    """Rows by a mask: their places are found each way, and gradients put there in order.

    aten/src/ATen/native/cuda/Nonzero.cu, Indexing.cu, index_put_with_sort_kernel@2.13.0.
    """

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        result = tape.new(count, width)
        places = tape.new(2 * rows, LONG)
        ordered = [tape.new(rows, LONG) for _ in range(2)]
        del places, ordered
        return (result,)

    count, width, rows = x.count, x.width, mask.count
    node = node_for(tape, back, x)
    places = tape.new(2 * rows, LONG)
    result = tape.new(count, width)
    del places
    if node is not None:
        node.keep(tape, mask)
    result.node = node
    return result


def causal(tape: Tape, logits: Tensor, rows: int, length: int) -> Tensor:
    """transformers/loss/loss_utils.py, ForCausalLMLoss@5.16.1: in fp32, over shifted labels."""
    logits = cast(tape, logits, FULL)
    labels = shifted_labels(tape, rows, length)
    loss = summed(tape, negative_log_likelihood(tape, saving_result(tape, logits), labels[-1]))
    del logits, labels
    return loss


def shifted_labels(tape: Tape, rows: int, length: int) -> list[Tensor]:
    """The padded labels, and a copy without their first column, unless they are of one row."""
    labels = [tape.new(rows * (length + 1), LONG)]
    if rows > 1:
        labels.append(tape.new(rows * length, LONG))
    return labels


def shifted(tape: Tape, logits: Tensor, rows: int, length: int) -> Tensor:
    """The same with logits copied: logits without the last token are copied, unless they are of one row."""
    logits = cast(tape, logits, FULL)
    labels = tape.new(rows * (length - 1), LONG)
    scored = logits if rows == 1 else without_last(tape, logits, length)
    loss = summed(tape, negative_log_likelihood(tape, saving_result(tape, scored), labels))
    del logits, scored
    return loss


def without_last(tape: Tape, logits: Tensor, length: int) -> Tensor:
    """A copy without each row's last token, whose gradient is as large as all."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, FULL),)

    count = logits.count
    node = node_for(tape, back, logits)
    result = tape.new(count // length * (length - 1), FULL)
    result.node = node
    return result


def negative_log_likelihood(tape: Tape, logarithms: Tensor, labels: Tensor | None) -> Tensor:
    """The sum over tokens, and its weight; labels of the batch itself are there anyway."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, FULL),)

    count = logarithms.count
    node = node_for(tape, back, logarithms)
    result, weight = tape.new(1, FULL), tape.new(1, FULL)
    if node is not None:
        node.keep(tape, logarithms, *(() if labels is None else (labels,)), weight)
    result.node = node
    return result


def summed(tape: Tape, loss: Tensor) -> Tensor:
    """The loss over the number of items of the batch."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(1, FULL),)

    node = node_for(tape, back, loss)
    result = tape.new(1, FULL)
    result.node = node
    return result
