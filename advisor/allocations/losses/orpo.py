"""TRL's ORPO and CPO, all tokens but a row's first being completions: chosen and rejected at once, and no reference.

trl/experimental/orpo/orpo_trainer.py, cpo/cpo_trainer.py, concatenated_inputs, concatenated_forward,
get_batch_logps@1.9.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, add, piece, saving_result
from advisor.allocations.losses.dpo import log_probabilities, to_one
from advisor.allocations.losses.losses import negative_log_likelihood, without_last
from advisor.record import record, replace

if TYPE_CHECKING:
    from advisor.allocations.layers.decoder import Model
    from advisor.allocations.shared import Batch


@record(eq=False)
class Orpo:
    """The cross-entropy of chosen rows, less the odds of all; metrics need the logits until it is there."""

    alone: bool = True
    """Whether the trainer is ORPO's; CPO's copies labels once, and writes into them."""
    chosen: bool = True
    """Whether chosen rows have a cross-entropy of their own."""

    def __call__(self, tape: Tape, model: Model, batch: Batch) -> Tensor:
        """The loss of all pairs."""
        joined = [tape.new(batch.tokens, LONG) for _ in range(3)]
        read = replace(batch, ids=joined[0]) if model.embedding.trained and tape.grad else batch
        logits = model.logits(tape, read)
        del read
        labels = _scored_labels(tape, batch) if self.alone else tape.new(batch.tokens, LONG)
        likely = likelihood(tape, logits, labels, batch) if self.chosen else None
        average = to_one(tape, _mean_log_probability(tape, logits, batch, in_place=not self.alone))
        del joined, labels
        loss = average if likely is None else add(tape, likely, average)
        del logits
        return loss


def _scored_labels(tape: Tape, batch: Batch) -> Tensor:
    """A copy of the tokens, and another in which those of padding are replaced."""
    copy = tape.new(batch.tokens, LONG)
    kept = tape.new(batch.tokens, 1)
    labels = tape.new(batch.tokens, LONG)
    del copy, kept
    return labels


def likelihood(tape: Tape, logits: Tensor, labels: Tensor, batch: Batch) -> Tensor:
    """The cross-entropy of the first half; logits and labels of one row need no copy."""
    chosen = piece(tape, logits, logits.count // 2)
    length = batch.length
    if batch.rows == 2:
        scored = piece(tape, chosen, chosen.count // length * (length - 1))
    else:
        scored = without_last(tape, chosen, length)
        labels = tape.new(batch.rows // 2 * (length - 1), LONG)
    return negative_log_likelihood(tape, saving_result(tape, scored), labels)


def _mean_log_probability(tape: Tape, logits: Tensor, batch: Batch, *, in_place: bool) -> Tensor:
    """Of each row's completion, by a mask and copies of labels."""
    count = batch.rows * (batch.length - 1)
    labels, mask = tape.new(count, LONG), tape.new(count, 1)
    outside = tape.new(count, 1)
    if not in_place:
        labels = tape.new(count, LONG)
    del outside
    per_token = log_probabilities(tape, logits, batch, labels)
    return averaged(tape, per_token, mask, batch.rows)


def averaged(tape: Tape, per_token: Tensor, mask: Tensor, rows: int) -> Tensor:
    """The sum over the mask, by row."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, FULL),)

    count = per_token.count
    node = node_for(tape, back, per_token)
    product = tape.new(count, FULL)
    if node is not None:
        node.keep(tape, mask)
    result = tape.new(rows, FULL)
    del product
    result.node = node
    return result
