"""TRL's losses over logits, in bytes per logit: preferences, and GRPO's policy.

axolotl puts kernels of its own in the place of TRL's selective_log_softmax and entropy_from_logits:
axolotl/loaders/patch_manager.py:1189-1220, monkeypatch/trainer/utils.py@0.19.0. They read rows that lie one after
another: of several rows without their last token they take a copy, which they keep for backward, and of which they make
one gradient. The entropy takes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory.logits import Logits

if TYPE_CHECKING:
    from advisor.run import Run


KERNELS_SINCE = "0.16.0"
"""axolotl's release with the kernels: https://github.com/axolotl-ai-cloud/axolotl/pull/3510."""


def preference(run: Run) -> Logits:
    """TRL's losses of preferences: trainer/dpo_trainer.py, kto_trainer.py@1.9.0.

    Under autocast the logits come back in fp32. They live to the loss's end, and so do the reference's.
    """
    width = logit_bytes(run)
    if has_kernels(run):
        return scored(run, width) if has_entropy(run) else scored_odds(run, width)
    return scored_by_row(run, width) if has_entropy(run) else odds(run, width)


def scored(run: Run, width: int) -> Logits:
    """DPO and KTO on axolotl's kernels, whose copy of the reference's logits is gone when metrics begin.

    These copy the answers' logits: DPO those of half of the rows at once, KTO rows by their label before, which is all
    of them where all have one label (dpo_trainer.py:1604-1609, kto_trainer.py:1614-1622@1.9.0).
    """
    copy = width if run.paired or run.micro_batch_size > 1 else 0
    reference = width if run.reference_model or run.scores_reference else 0
    metrics = 2 * width if run.rl == "kto" else width // 2
    passing = copy if reference else 0
    return Logits(width, width + copy + reference + max(passing, metrics), 2 * width)


def scored_odds(run: Run, width: int) -> Logits:
    """ORPO's and CPO's loss on axolotl's kernels: a cross-entropy over the chosen half keeps its log-softmax.

    Its gradient is added to that of all logits in place.
    """
    half = width // 2 if run.chosen_cross_entropy else 0
    return Logits(width + half, 2 * width + half, 2 * width + half)


def scored_by_row(run: Run, width: int) -> Logits:
    """DPO and KTO with TRL's own functions: utils.py, selective_log_softmax, entropy_from_logits@1.9.0.

    fp32 logits are kept; in half precision log-probabilities by row are, too. Metrics copy the shifted logits: the
    entropy all of them; KTO, after it, rows by their label and of those the answers' tokens. Backward: logits, the
    gradients of rows, and those stacked; then those, and zeros that are scattered into.
    """
    kept = width if width == FP32 else 2 * width
    reference = width if run.reference_model or run.scores_reference else 0
    copies = 2 if run.rl == "kto" else 1
    return Logits(width, kept + reference + copies * width, 12 if width == FP32 else 2 * width)


def odds(run: Run, width: int) -> Logits:
    """ORPO's and CPO's loss, which have no entropy: trl/experimental/orpo/orpo_trainer.py, cpo/cpo_trainer.py@1.9.0.

    Under autocast half precision's logits turn to fp32 next to them. A cross-entropy over the chosen half, if any,
    comes first and keeps its log-softmax; it is at its largest with a copy of those logits. The rest is as in DPO.
    """
    single = width == FP32
    kept = width if single else 2 * width
    passing = width // 2 if single else 0
    if not run.chosen_cross_entropy:
        return Logits(width, kept + passing, 12 if single else 2 * width)
    half = width // 2
    return Logits(width + half, kept + half + passing, 14 if single else 3 * width)


FP32 = 4


def logit_bytes(run: Run) -> int:
    """The width of logits as the loss gets them."""
    return FP32 if run.autocast or run.precision == "fp32" else run.compute_bytes


def has_kernels(run: Run) -> bool:
    """Whether axolotl's kernels compute log-probabilities and entropy."""
    return run.stack.trainer == "axolotl" and run.stack.at_least("axolotl", KERNELS_SINCE)


def has_entropy(run: Run) -> bool:
    """Whether TRL's metrics of the loss have the entropy of all logits."""
    return run.rl not in {"orpo", "simpo"}


def policy(run: Run) -> Logits:
    """TRL's GRPO: trl/trainer/grpo_trainer.py:1499-1533, utils.py, selective_log_softmax@1.9.0.

    Without axolotl's kernels fp32 logits are kept; in half precision each row's log-probabilities, too. Rows without
    their last token lie apart, so that the kernels, or else the entropy, take a copy of several. Logits are divided by
    the temperature in place, in a view: backward copies their gradient twice for that, and divides. Autocast's wrapper
    turns half precision's logits to fp32 next to them.
    """
    width, apart = logit_bytes(run), run.micro_batch_size > 1
    if has_kernels(run):
        passing = 2 if run.autocast and run.precision != "fp32" else 0
        return Logits(width, 2 * width if apart else width + passing, 4 * width)
    if width == FP32:
        return Logits(4, 8 if apart else 4, 16)
    return Logits(2, 6 if apart else 4, 8)
