"""TRL's KTO, all tokens but a row's first being completions, all of them wanted: so metrics copy most.

trl/trainer/kto_trainer.py, _compute_kl_logps, _compute_loss@1.9.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.operations import FULL, LONG
from advisor.allocations.losses.dpo import average, log_probabilities, summed, to_one, weighed
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.layers.decoder import Model
    from advisor.allocations.shared import Batch


class Kto:
    """The loss of a policy next to its reference, the model without adapters or a copy, and both for other answers."""

    def __init__(self, reference: Model | None) -> None:
        self.reference = reference

    def __call__(self, tape: Tape, model: Model, batch: Batch) -> Tensor:
        """The loss; logits of both live until it is there."""
        other = unmatched(tape, model, batch)
        tape.part = "forward"
        policy = model.logits(tape, batch)
        per_token = log_probabilities(tape, policy, batch)
        sums = summed(tape, per_token, batch)
        grad, tape.grad, tape.bare = tape.grad, False, self.reference is None
        base, plain = self.reference or model, replace(batch, checkpointing="")
        expected_other = unmatched(tape, base, plain)
        tape.part = "forward"
        expected = base.logits(tape, plain)
        tape.bare = False
        others = log_probabilities(tape, expected, batch)
        expected_sums = summed(tape, others, batch)
        tape.grad = grad
        loss = to_one(tape, sums)
        metrics(tape, policy, batch)
        del other, expected_other, expected_sums, others, expected, per_token, policy
        return loss


def unmatched(tape: Tape, model: Model, batch: Batch) -> Tensor:
    """The log-probabilities of rows with answers to other prompts, without gradients."""
    grad, tape.grad, tape.part = tape.grad, False, "forward"
    logits = model.logits(tape, batch)
    per_token = log_probabilities(tape, logits, batch)
    sums = summed(tape, per_token, batch)
    tape.grad = grad
    return sums


def metrics(tape: Tape, logits: Tensor, batch: Batch) -> None:
    """The entropy of all tokens; copies of rows and masks by their label, and of the logits of completions."""
    tokens, words, entropies = weighed(tape, logits, batch)
    chosen, mask = tape.new(tokens * words, FULL), tape.new(tokens, LONG)
    average(tape, tokens, words)
    del chosen, mask, entropies
