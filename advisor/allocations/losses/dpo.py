"""TRL's direct preference optimisation, all tokens but a row's first being completions: chosen and rejected at once.

trl/trainer/dpo_trainer.py, _compute_loss@1.9.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, copied, piece
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
    """The logit of each next token less the logarithm of the sum of all: axolotl's kernels.

    axolotl/monkeypatch/trainer/utils.py:427-510@0.19.0. Rows without their last token are copied, and so are labels
    that are a part of the batch.
    """

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(whole, FULL),)

    tokens = batch.rows * (batch.length - 1)
    scored = copied(tape, piece(tape, logits, logits.count // batch.length * (batch.length - 1)))
    whole = scored.count
    index = labels or tape.new(tokens, LONG)
    node = node_for(tape, back, scored)
    result, sums = tape.new(tokens, FULL), tape.new(tokens, FULL)
    if node is not None:
        node.keep(tape, scored, index, sums)
    result.node = node
    return result


def summed(tape: Tape, per_token: Tensor, batch: Batch) -> Tensor:
    """The sum over a row's completion; other tokens are filled with zeros, in a view: autograd's CopySlices.

    A sum's gradient is one number a row, which is written out where rows become one.
    """

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        written = tape.new(count, FULL)
        result = tape.new(count, FULL)
        copy, filled = tape.new(count, FULL), tape.new(count, FULL)
        del copy, filled, written
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
    entropies = tape.new(tokens, FULL)
    tape.new(tokens, FULL)
    return tokens, words, entropies


def metrics(tape: Tape, logits: Tensor, batch: Batch) -> None:
    """The entropy of all tokens; mean logits, a copy of half of them at a time; and the accuracy."""
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
