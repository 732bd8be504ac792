"""Liger's losses: liger_kernel 0.8.1. They write gradients over what they have read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd import liger
from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, HALF, LONG, cast
from advisor.allocations.losses import losses

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Plain
    from advisor.allocations.shared import Batch


def cross_entropy(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> losses.Scored:
    """ops/cross_entropy.py, LigerCrossEntropyFunction, in transformers' loss: over the logits in fp32."""

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (liger.over(node.take()),)

    logits = head(tape, hidden)
    exact = cast(tape, logits, FULL)
    labels = losses.shifted_labels(tape, batch.rows, batch.length)
    node = node_for(tape, back, exact)
    each = tape.new(batch.tokens, FULL)
    asked = tape.new(batch.tokens, 1)
    for _ in range(2):  # the largest and the smallest label are looked at
        checked = tape.new(batch.tokens, LONG)
        del checked
    result = tape.new(1, FULL)
    del each, asked
    if node is not None:
        node.keep(tape, exact)
    result.node = node
    del exact, labels
    return logits, losses.summed(tape, result)


def fused_linear(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> tuple[Tensor | None, Tensor]:
    """ops/fused_linear_cross_entropy.py; in evaluation the logits are made (transformers/model/llama.py)."""
    if not tape.grad:
        return losses.plain(tape, hidden, head, batch)
    labels = losses.shifted_labels(tape, batch.rows, batch.length)
    loss = chunked(tape, hidden, head)
    del labels
    return None, losses.summed(tape, loss)


def chunked(tape: Tape, hidden: Tensor, head: Plain) -> Tensor:
    """Logits of some tokens at a time, over which their gradient is written; the last ones are let go of later."""

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        of_hidden = liger.over(node.take())
        return of_hidden, node.take() if node.saved else None

    tokens, words, weight = hidden.count // head.n_in, head.n_out, head.weight
    node = node_for(tape, back, hidden, weight)
    of_hidden = tape.new(hidden.count, hidden.width)
    of_weight = tape.new(weight.count, weight.width) if weight.requires_grad else None
    losses_ = tape.new(tokens, FULL)
    asked = tape.new(tokens, 1)
    logits: Tensor | None = None
    for count in chunks(tokens, words, head.n_in):
        previous, logits = logits, tape.new(count * words, HALF)
        if of_weight is None:
            previous = None
        product = tape.new(count * head.n_in, HALF)
        del product, previous
        if of_weight is not None:
            product = tape.new(weight.count, HALF)
            exact = tape.new(weight.count, FULL)
            del product, exact
    result = tape.new(1, FULL)
    del losses_, asked, logits
    if node is not None:
        node.keep(tape, of_hidden, *(() if of_weight is None else (of_weight,)))
    result.node = node
    return result


def chunks(tokens: int, words: int, hidden: int) -> list[int]:
    """How many tokens are taken at a time."""
    size = 1 << (-(-tokens // -(-words // hidden)) - 1).bit_length()
    return [min(size, tokens - start) for start in range(0, tokens, size)]
