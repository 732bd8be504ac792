"""Scores of tokens and of whole rows in place of a head, and their losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, cast, dropped, into_zeros, saving_result
from advisor.allocations.losses import losses

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Plain
    from advisor.allocations.shared import Batch

INT = 4


def by_token(tape: Tape, hidden: Tensor, head: Plain, _batch: Batch) -> losses.Scored:
    """transformers/modeling_layers.py, GenericForTokenClassification; loss_utils.py, ForTokenClassification@5.16.1."""
    thinned = dropped(tape, hidden)
    logits = head(tape, thinned)
    del thinned
    exact = cast(tape, logits, FULL)
    loss = losses.negative_log_likelihood(tape, saving_result(tape, exact), None)
    del exact, hidden
    return logits, loss


def by_sequence(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> losses.Scored:
    """GenericForSequenceClassification: the score of each row's last token. What is left of pairs are single numbers.

    trl/trainer/reward_trainer.py, compute_loss@1.9.0.
    """
    logits = head(tape, hidden)
    wanted = tape.new(batch.tokens, 1)
    seen = tape.new(batch.tokens, INT)
    del wanted
    places = tape.new(batch.length, INT)
    last = tape.new(batch.tokens, INT)
    del last
    scores = picked(tape, logits, batch.rows)
    del seen, places, logits
    return scores, losses.summed(tape, cast(tape, scores, FULL))


def picked(tape: Tape, logits: Tensor, rows: int) -> Tensor:
    """One number a row; its gradient is as large as all."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (into_zeros(tape, *whole),)

    whole = logits.count, logits.width
    node = node_for(tape, back, logits)
    kept = tape.new(rows, LONG), tape.new(rows, LONG)
    result = tape.new(rows, logits.width)
    if node is not None:
        node.keep(tape, *kept)
    result.node = node
    return result
