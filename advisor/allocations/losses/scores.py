"""Heads and losses as one function, and which of them a run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, HALF, LONG, cast
from advisor.allocations.losses import classifiers, liger_losses, losses
from advisor.memory.towers import used_towers

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Plain
    from advisor.allocations.layers.decoder import Score
    from advisor.allocations.shared import Batch
    from advisor.run import Run

INT = 4
LOCKED = 128
"""Tokens, or words, that share a lock; and 64 of the width."""


def score_of(run: Run) -> Score:
    """The head and the loss of a run."""
    if run.classifier is not None:
        return classifiers.by_sequence if run.classifier == "sequence" else classifiers.by_token
    others: dict[str, Score] = {
        "cut": cut,
        "liger": liger_losses.cross_entropy,
        "liger-fused": liger_losses.fused_linear,
    }
    if run.loss in others:
        return others[run.loss]
    if run.model is not None and run.model.family.own_loss:
        return losses.own_masked if used_towers(run, run.model) else losses.own
    return losses.plain if run.stack.at_least("transformers", "4.49.0") else losses.copying


def cut(tape: Tape, hidden: Tensor, head: Plain, batch: Batch) -> tuple[None, Tensor]:
    """Cut cross entropy, with every token but a row's first to be predicted.

    cut_cross_entropy/cce.py, LinearCrossEntropyFunction; transformers/utils.py, apply_lce
    (axolotl-ai-cloud/ml-cross-entropy).
    """
    hidden = cast(tape, hidden, HALF)
    wanted = predicted(tape, batch)
    summed = _cut_sum(tape, hidden, head, wanted)
    del hidden, wanted
    return None, losses.summed(tape, summed)


def predicted(tape: Tape, batch: Batch) -> Tensor:
    """Where the tokens are that are predicted: cut_cross_entropy/utils.py, _build_flat_valids."""
    count = batch.rows * (batch.length - 1)
    wanted = tape.new(count, 1)
    places = tape.new(count * 2, LONG)
    del wanted
    by_row = tape.new(count * 2, INT)
    del places
    found = tape.new(count, LONG)
    del by_row
    return found


def _cut_sum(tape: Tape, hidden: Tensor, head: Plain, scored: Tensor) -> Tensor:
    """The sum over tokens; kept are the logarithms of their sums, and the mean logit of each word, to sort them by."""

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        values, order = tape.new(words, FULL), tape.new(words, LONG)
        del values
        sorted_words = tape.new(words, INT)
        del order
        of_hidden = tape.new(size, HALF) if node.needs[0] else None
        of_weight = tape.new(words * width, HALF) if node.needs[1] else None
        by_width = -(-width // 64)
        locks = [tape.new(-(-tokens // LOCKED) * by_width, INT)] if of_hidden is not None else []
        locks += [tape.new(-(-words // LOCKED) * by_width, INT)] if of_weight is not None else []
        del sorted_words, locks
        return of_hidden, of_weight

    size, tokens, width, words, weight = hidden.count, scored.count, head.n_in, head.n_out, head.weight
    node = node_for(tape, back, hidden, weight)
    sums = tape.new(tokens, FULL)
    locks = tape.new(-(-tokens // LOCKED), INT)
    means = tape.new(words, FULL) if hidden.requires_grad or weight.trained else None
    del locks
    scores = tape.new(tokens, FULL)
    result = tape.new(1, FULL)
    del scores
    if node is not None and means is not None:
        node.keep(tape, hidden, weight, sums, scored, means)
    result.node = node
    return result
