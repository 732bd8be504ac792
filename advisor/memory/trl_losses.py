"""TRL's losses over logits, in bytes per logit: preferences, and GRPO's policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.logits import Logits

if TYPE_CHECKING:
    from advisor.run import Run


def preference(run: Run) -> Logits:
    """TRL's losses of preferences: trainer/dpo_trainer.py, kto_trainer.py, utils.py, selective_log_softmax@1.9.0.

    Under autocast the logits come back in fp32 and are kept; without it log-probabilities by row are, and the logits
    live to the loss's end. So do the reference's, and then metrics copy the shifted logits: the entropy all of them;
    KTO, after it, rows by their label and of those the answers' tokens, which is two copies where all have one label
    (kto_trainer.py:1616-1622). Backward: logits, the gradients of rows, and those stacked; then those, and zeros that
    are scattered into.
    """
    single = run.autocast or run.precision == "fp32"
    width = 4 if single else run.compute_bytes
    kept = width if single else 2 * width
    if not has_entropy(run):
        return odds(run, width, kept)
    reference = width if run.reference_model or run.scores_reference else 0
    copies = 2 if run.rl == "kto" else 1
    return Logits(width, kept + reference + copies * width, 12 if single else 2 * width)


def odds(run: Run, width: int, kept: int) -> Logits:
    """ORPO's and CPO's loss, which have no entropy: trl/experimental/orpo/orpo_trainer.py, cpo/cpo_trainer.py@1.9.0.

    Half precision's logits turn to fp32 next to them. A cross-entropy over the chosen half, if any, comes first and
    keeps its log-softmax; it is at its largest with a copy of those logits. The rest is the same as in DPO.
    """
    single = kept == width
    passing = width // 2 if single else 0
    if not run.chosen_cross_entropy:
        return Logits(width, kept + passing, 12 if single else 2 * width)
    half = width // 2
    return Logits(width + half, kept + half + passing, 14 if single else 3 * width)


def has_entropy(run: Run) -> bool:
    """Whether TRL's metrics of the loss have the entropy of all logits."""
    return run.rl not in {"orpo", "simpo"}


def policy(run: Run) -> Logits:
    """TRL's GRPO: trl/trainer/grpo_trainer.py:1499-1533, utils.py, selective_log_softmax@1.9.0.

    Under autocast fp32 logits are kept; without it each row's log-probabilities, too, in half precision. Rows without
    their last token lie apart, so that the entropy takes a copy of several. Logits are divided by the temperature in
    place, in a view: backward copies their gradient twice for that, and divides.
    """
    apart = run.micro_batch_size > 1
    if run.autocast or run.precision == "fp32":
        return Logits(4, 8 if apart else 4, 16)
    return Logits(2, 6 if apart else 4, 8)
