"""The loss: logits, log-softmax and gradients in bytes per logit (tokens x vocabulary), and fused losses.

Peaks hold everything of the loss that is allocated at that moment, what is saved included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.memory import liger_policy
from advisor.memory.logits import OWN_FP32, OWN_HALF, PADDED_LABELS, PLAIN, Logits
from advisor.memory.lora_targets import ties_ends
from advisor.memory.trl_losses import has_entropy, has_kernels, logit_bytes, policy, preference

if TYPE_CHECKING:
    from advisor.models.architecture import Architecture
    from advisor.run import Run

SOURCE = "transformers/loss/loss_utils.py, ForCausalLMLoss@5.16.1, traced"


ENTROPY_ROWS = 128
"""Rows of logits that TRL's entropy metric takes at once, three tensors of them
(trl/trainer/utils.py@1.9.0)."""

STRIDED_CHUNK = 256
"""Tokens whose logits EBFT's strided loss makes at once; their log-probabilities stay in fp32
(axolotl/core/trainers/ebft/strided.py, compute_loss@0.19.0)."""


def loss_saved_bytes(run: Run, model: Architecture) -> int:
    """Bytes that the loss keeps from its forward to its backward."""
    match kind(run):
        case "liger-fused":
            return _liger_gradients(run, model)
        case "cut":
            return 8 * run.tokens
        case "liger policy":
            return liger_policy.kept(run, model, scored_tokens(run))
        case _:
            return _logits_bytes(run, model, logits_of(run, model).saved)


def loss_forward_peak_bytes(run: Run, model: Architecture) -> int:
    """Bytes at the end of the forward, when the loss is at its largest."""
    match kind(run):
        case "strided":
            return loss_saved_bytes(run, model) + 6 * strided_chunk(run) * model.outputs
        case "liger-fused":
            return _liger_gradients(run, model) + _liger_chunk(run, model) + _liger_accumulation(run, model)
        case "liger policy":
            return liger_policy.forward_peak(run, model, scored_tokens(run))
        case "cut":
            return 8 * run.tokens
        case "preference" | "policy":
            return _logits_bytes(run, model, logits_of(run, model).forward) + metrics_peak_bytes(run, model)
        case _:
            return _logits_bytes(run, model, logits_of(run, model).forward)


def loss_backward_peak_bytes(run: Run, model: Architecture) -> int:
    """Bytes at the start of the backward, until the logits' gradient has reached the head."""
    match kind(run):
        case "strided":
            return loss_saved_bytes(run, model) + 8 * strided_chunk(run) * model.outputs
        case "liger-fused":
            return _liger_gradients(run, model)
        case "liger policy":
            return liger_policy.backward_peak(run, model, scored_tokens(run))
        case "cut":
            return run.tokens * (8 + 2 * model.hidden_size)
        case _:
            return _logits_bytes(run, model, logits_of(run, model).backward)


def evaluation_loss_bytes(run: Run, model: Architecture) -> int:
    """Bytes of logits and loss in evaluation, where only the loss is returned.

    Liger's fused loss steps aside outside of training (liger_kernel/transformers/model/llama.py,
    skip_logits@0.8.1); cut cross entropy does not.
    """
    match kind(run):
        case "liger-fused":
            return _logits_bytes(run, model, plain(run, model).forward)
        case _:
            return loss_forward_peak_bytes(run, model)


def kind(run: Run) -> str:
    """The loss that the trainer computes; preference training takes the model's logits to TRL's own."""
    if run.classifier is not None:
        return "classifier"
    if run.rollouts is not None:
        return "liger policy" if run.loss == "liger-fused" else "policy"
    if run.ebft is not None:
        return "strided"
    return "preference" if (run.paired or run.rl == "kto") and run.loss != "liger-fused" else run.loss


def _logits_bytes(run: Run, model: Architecture, width: int) -> int:
    """Bytes of tensors of the logits' shape that sum to ``width`` bytes per logit."""
    return scored_tokens(run) * model.outputs * width


def scored_tokens(run: Run) -> int:
    """Tokens whose logits the loss takes: GRPO's are the answers', and one more a row (``logits_to_keep``).

    trl/trainer/grpo_trainer.py:1499-1517@1.9.0.
    """
    if run.ebft is not None and run.ebft.stride:
        documents = run.micro_batch_size * run.ebft.samples
        length = run.ebft.answers(run.sequence_len) + (run.sequence_len - 1 if run.ebft.trains_documents else 0)
        return documents * length
    if run.rollouts is None:
        return run.tokens
    return min(run.tokens, run.micro_batch_size * (run.rollouts.completion + 1))


def logits_of(run: Run, model: Architecture) -> Logits:
    """The widths of the losses that make logits."""
    cap = run.compute_bytes if model.family.soft_capped else 0
    match kind(run):
        case "preference":
            base = preference(run)
        case "policy":
            base = policy(run)
        case "strided":
            base = Logits(4, 4, 4)
        case "chunked":
            base = chunked(run)
        case "liger":
            base = liger_cross_entropy(run)
        case "diffusion":
            base = diffusion(run)
        case _:
            base = plain(run, model)
    return Logits(base.saved + cap, base.forward + cap, base.backward + cap)


def plain(run: Run, model: Architecture) -> Logits:
    """The model's own cross-entropy. fp32 logits need no copy; backward is the same."""
    since = model.family.common_loss_since
    if since and not run.stack.at_least("transformers", since):
        return OWN_FP32 if run.autocast or run.precision == "fp32" else OWN_HALF
    found = next(logits for version, logits in PLAIN if run.stack.at_least("transformers", version))
    if run.precision != "fp32" and model.family.own_loss and (run.micro_batch_size > 1 or not run.sample_packing):
        return Logits(found.saved, 12, found.backward)  # and a copy of what is scored: see Family.own_loss
    if run.precision != "fp32":
        return found
    return Logits(4, found.forward - 2 if found is PADDED_LABELS else 12, found.backward)


def chunked(run: Run) -> Logits:
    """axolotl's chunked cross-entropy: axolotl/monkeypatch/loss/chunked.py@0.19.0.

    It is compiled, so nothing else is stored.

    Rows are cut along the sequence: with more than one, reshaping copies each chunk. Backward joins the
    gradients of chunks. Autocast's wrapper turns the returned logits to fp32. Read, not traced.
    """
    width = run.compute_bytes
    copies = width if run.micro_batch_size > 1 else 0
    return Logits(width, width + copies + returned(run), 2 * width)


def liger_cross_entropy(run: Run) -> Logits:
    """Liger's cross-entropy writes its gradient over the fp32 logits.

    liger_kernel/ops/cross_entropy.py@0.8.1. Read.
    """
    width = run.compute_bytes
    copy = 0 if run.precision == "fp32" else 4
    return Logits(4, width + copy + returned(run), 4 + (0 if run.precision == "fp32" else 2))


def diffusion(run: Run) -> Logits:
    """axolotl's loss of masked tokens, with all of them masked: integrations/diffusion/trainer.py@0.19.0, traced.

    The logits, which the outputs hold, moved by a place, those of masked tokens, and their log-softmax.
    """
    if run.autocast or run.precision == "fp32":
        return Logits(4, 16, 12)
    return Logits(4, 14, 12)


def returned(run: Run) -> int:
    """fp32 copies of the returned logits: accelerate/utils/operations.py, ConvertOutputsToFp32@1.13.0."""
    return 4 if run.autocast and run.precision != "fp32" else 0


def metrics_peak_bytes(run: Run, model: Architecture) -> int:
    """What metrics and sums of powers hold for a while besides copies of the logits.

    axolotl's kernels hold nothing. TRL's entropy of some rows is three tensors of them, next to one copy, so KTO's two
    are mostly more. A single row's sum of powers, of which GRPO's entropy makes no copy, is as large as the row.
    """
    if has_kernels(run):
        return 0
    width = logit_bytes(run)
    entropy = 3 * width * min(ENTROPY_ROWS, scored_tokens(run)) * model.outputs
    copy = _logits_bytes(run, model, width)
    if run.rl == "kto":
        return max(0, entropy - copy)
    if run.rollouts is not None and run.micro_batch_size == 1 and width == 4:
        return max(entropy, copy)
    return entropy if has_entropy(run) else 0


def strided_chunk(run: Run) -> int:
    """Tokens of one row whose logits exist at once."""
    assert run.ebft is not None
    return min(STRIDED_CHUNK, scored_tokens(run) // max(1, run.micro_batch_size * run.ebft.samples))


def head_is_trained(run: Run) -> bool:
    """Whether the head gets a gradient; with an adapter PEFT trains a copy of a classifier's score.

    axolotl/loaders/adapter.py:131-137@0.19.0; peft/peft_model.py, PeftModelForSequenceClassification@0.20.0.
    """
    if run.adapter is None or run.classifier is not None:
        return True
    tied = run.model is not None and ties_ends(run, run.model)
    return run.lora is not None and ("lm_head" in run.lora.modules_to_save or tied)


def _liger_gradients(run: Run, model: Architecture) -> int:
    """Liger's fused loss computes gradients in its forward and keeps them: of its input, and of a trained head.

    liger_kernel/ops/fused_linear_cross_entropy.py@0.8.1.
    """
    width = 4 if run.embeddings_fp32 else run.compute_bytes
    head = width * model.outputs * model.hidden_size if head_is_trained(run) else 0
    return run.tokens * model.hidden_size * run.compute_bytes + head


def _liger_chunk(run: Run, model: Architecture) -> int:
    """Logits of one chunk: the power of two above tokens / (vocabulary / hidden) rows.

    Preference losses take one pair of rows at a time, with fp32 logits and log-probabilities as well
    (liger_kernel/chunked_loss/fused_linear_preference.py@0.8.1; read, not traced).
    """
    width = run.compute_bytes
    if run.paired:
        return 2 * run.sequence_len * model.outputs * (width + 8)
    parts = -(-model.outputs // model.hidden_size)
    rows = min(run.tokens, 1 << (-(-run.tokens // parts) - 1).bit_length())
    return rows * model.outputs * width


def _liger_accumulation(run: Run, model: Architecture) -> int:
    """A chunk's product for the head's gradient and its fp32 copy, before it is added."""
    product = run.compute_bytes
    copy = 0 if run.precision == "fp32" else 4
    return (product + copy) * model.outputs * model.hidden_size if head_is_trained(run) else 0
