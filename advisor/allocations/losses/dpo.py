"""TRL's direct preference optimisation, all tokens but a row's first being completions: chosen and rejected at once.

trl/trainer/dpo_trainer.py, _compute_loss; trainer/utils.py, selective_log_softmax, entropy_from_logits@1.9.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, piece, split
from advisor.memory.loss import ENTROPY_ROWS
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.allocations.layers.decoder import Model
    from advisor.allocations.shared import Batch


class Dpo:
    """The loss of a policy next to its reference: the model without its adapters, or a copy of its own."""

    def __init__(self, reference: Model | None) -> None:
        self.reference = reference

    def __call__(self, tape: Tape, model: Model, batch: Batch) -> Tensor:
        """The loss; logits of both live until it is there."""
        policy = model.logits(tape, batch)
        per_token = log_probabilities(tape, policy, batch)
        chosen = summed(tape, per_token, batch)
        tape.part = "forward"
        grad, tape.grad, tape.bare = tape.grad, False, self.reference is None
        expected = (self.reference or model).logits(tape, replace(batch, checkpointing=""))
        tape.bare = False
        others = log_probabilities(tape, expected, batch)
        reference = summed(tape, others, batch)
        tape.grad = grad
        loss = to_one(tape, chosen)
        metrics(tape, policy, batch)
        del reference, others, expected, per_token, policy
        return loss


def log_probabilities(tape: Tape, logits: Tensor, batch: Batch, labels: Tensor | None = None) -> Tensor:
    """The logit of each next token less the logarithm of the sum of all, a row at a time."""
    scored = piece(tape, logits, logits.count // batch.length * (batch.length - 1))
    selected = gathered(tape, scored, batch.rows * (batch.length - 1), labels)
    rows = split(tape, scored, [scored.count // batch.rows] * batch.rows)
    sums = stacked(tape, [_sum_of_powers(tape, row, batch.length - 1) for row in rows])
    del rows
    return less(tape, selected, sums)


def gathered(tape: Tape, x: Tensor, count: int, labels: Tensor | None) -> Tensor:
    """One element of each row, whose gradient is put into zeros; labels of the batch itself are there anyway."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(whole, FULL),)

    whole = x.count
    node = node_for(tape, back, x)
    result = tape.new(count, FULL)
    if node is not None:
        node.keep(tape, x, *(() if labels is None else (labels,)))
    result.node = node
    return result


def _sum_of_powers(tape: Tape, x: Tensor, count: int) -> Tensor:
    """logsumexp: aten/src/ATen/native/ReduceOps.cpp@2.13.0."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        shifted, powers = tape.new(whole, FULL), tape.new(whole, FULL)
        result = tape.new(whole, FULL)
        del shifted, powers
        return (result,)

    whole = x.count
    node = node_for(tape, back, x)
    largest = tape.new(count, FULL)
    sizes = tape.new(count, FULL)
    infinite = tape.new(count, 1)
    del sizes, infinite
    powers = tape.new(whole, FULL)
    result = tape.new(count, FULL)
    del powers, largest
    if node is not None:
        node.keep(tape, x, result.detached())
    result.node = node
    return result


def stacked(tape: Tape, some: list[Tensor]) -> Tensor:
    """Rows as one tensor, whose gradients are views."""

    def back(_node: Node, given: list[Tensor]) -> list[Tensor | None]:
        return [Tensor(given[0].storage, count, FULL) for count in counts]

    counts = [one.count for one in some]
    node = node_for(tape, back, *some)
    result = tape.new(sum(counts), FULL)
    result.node = node
    return result


def less(tape: Tape, left: Tensor, right: Tensor) -> Tensor:
    """A difference."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        return given[0].detached(), tape.new(given[0].count, FULL)

    node = node_for(tape, back, left, right)
    result = tape.new(left.count, FULL)
    result.node = node
    return result


def summed(tape: Tape, per_token: Tensor, batch: Batch) -> Tensor:
    """The sum over a row's completion; other tokens are filled with zeros, in a view: autograd's CopySlices."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        result = tape.new(count, FULL)
        copy, filled = tape.new(count, FULL), tape.new(count, FULL)
        del copy, filled
        return (result,)

    count = per_token.count
    node = node_for(tape, back, per_token)
    outside = tape.new(count, 1)
    if node is not None:
        node.keep(tape, outside)
    del outside
    result = tape.new(batch.rows, FULL)
    result.node = node
    return result


def to_one(tape: Tape, sums: Tensor) -> Tensor:
    """One number of all rows."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, FULL),)

    count = sums.count
    node = node_for(tape, back, sums)
    result = tape.new(1, FULL)
    result.node = node
    return result


def weighed(tape: Tape, logits: Tensor, batch: Batch) -> tuple[int, int, Tensor]:
    """Tokens that are scored, words that each might be, and the tokens' entropies, which a mask weighs."""
    tokens = batch.rows * (batch.length - 1)
    words = logits.count // (batch.rows * batch.length)
    entropies = entropy(tape, tokens, words)
    tape.new(tokens, FULL)
    return tokens, words, entropies


def metrics(tape: Tape, logits: Tensor, batch: Batch) -> None:
    """The entropy of all tokens, which copies the logits; mean logits, a copy of half of them; and the accuracy."""
    tokens, words, entropies = weighed(tape, logits, batch)
    half = tokens // 2
    for _ in range(2):
        average(tape, half, words)
    predicted = tape.new(half, LONG)
    right, where = tape.new(half, 1), tape.new(half, 1)
    both = tape.new(half, 1)
    del right, where
    del both, predicted, entropies


def average(tape: Tape, tokens: int, words: int) -> None:
    """The mean logits of completions, which are copied by their places."""
    where = tape.new(tokens, 1)
    places = tape.new(2 * tokens, LONG)
    inside = tape.new(tokens * words, FULL)
    del where, places
    mean = tape.new(tokens, FULL)
    del inside, mean


def entropy(tape: Tape, tokens: int, words: int) -> Tensor:
    """entropy_from_logits: some rows at a time; names keep the last of them until the next are there."""
    copy = tape.new(tokens * words, FULL)
    found: list[Tensor] = []
    logarithms: Tensor | None = None
    for start in range(0, tokens, ENTROPY_ROWS):
        count = min(ENTROPY_ROWS, tokens - start)
        logarithms = tape.new(count * words, FULL)
        powers = tape.new(count * words, FULL)
        products = tape.new(count * words, FULL)
        del powers
        total = tape.new(count, FULL)
        del products
        found.append(tape.new(count, FULL))
        del total
    result = tape.new(tokens, FULL)
    del copy, found, logarithms
    return result
