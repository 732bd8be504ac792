# pyright: basic, reportMissingImports=false
"""TRL's steps from a model to its loss of preferences: trl/trainer/dpo_trainer.py@1.9.0, with axolotl's kernels.

All tokens but a row's first belong to completions. Numbers of rows and of batches are left out.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as functional


class Selected(torch.autograd.Function):
    """axolotl's kernels: axolotl/monkeypatch/trainer/utils.py, _SelectiveLogSoftmaxTriton@0.19.0."""

    @staticmethod
    def forward(context: Any, rows: Any, index: Any) -> Any:
        found = torch.empty(len(rows), 1)
        sums = torch.empty(len(rows))
        context.save_for_backward(rows, index, sums)
        return found

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        rows, _index, _sums = context.saved_tensors
        return torch.empty_like(rows), None


class Filled(torch.autograd.Function):
    """tools/autograd/derivatives.yaml, index_put_@2.13.0."""

    @staticmethod
    def forward(context: Any, values: Any, mask: Any) -> Any:
        context.mark_dirty(values)
        context.save_for_backward(mask)
        return values.masked_fill_(mask, 0.0)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        return torch.empty(gradient.shape), None


def log_probabilities(logits: Any, labels: Any) -> Any:
    """selective_log_softmax: axolotl/monkeypatch/trainer/utils.py:468-510@0.19.0."""
    flat = logits.reshape(-1, logits.shape[-1])  # a view where one can be
    index = labels.reshape(-1, 1).contiguous()
    return Selected.apply(flat, index).to(logits.dtype).reshape(labels.shape)


def entropy(logits: Any) -> Any:
    """entropy_from_logits: axolotl/monkeypatch/trainer/utils.py:109-162@0.19.0."""
    return torch.empty(logits.shape[:-1])


def masked_sums(per_token: Any, completion: Any) -> Any:
    """The sum over each row's completion."""
    return Filled.apply(per_token, completion == 0).sum(dim=1)


def preferred(
    run: Callable[..., Any],
    batch: dict[str, Any],
    masked: bool,
    reference: Callable[..., Any],
    bare: Callable[[], AbstractContextManager[Any]],
) -> Any:
    """DPOTrainer._compute_loss: the policy, the reference, and metrics that copy the logits."""
    tokens, completion = batch["input_ids"], batch["completion_mask"]
    inputs = {"input_ids": tokens, "use_cache": False}
    if masked:
        inputs["attention_mask"] = batch["attention_mask"]
    outputs = run(**inputs)
    logits, labels, mask = outputs.logits[..., :-1, :], tokens[..., 1:], completion[..., 1:]
    per_token = log_probabilities(logits, labels)
    sums = masked_sums(per_token, mask)
    with torch.no_grad(), bare():
        other = reference(**inputs)
        other_logits = other.logits[..., :-1, :]
        other_per_token = log_probabilities(other_logits, labels)
        other_sums = masked_sums(other_per_token, mask)
    chosen, rejected = (sums - other_sums).chunk(2)
    loss = -functional.logsigmoid(0.1 * (chosen - rejected)).mean()
    with torch.no_grad():
        entropies = entropy(logits.detach())
        (entropies * mask).sum()
        for half, where in zip(logits.detach().chunk(2), mask.chunk(2), strict=True):
            inside(half, where).mean(-1).sum()
        predictions = logits.detach().chunk(2)[0].argmax(dim=-1)
        correct = (predictions == labels[: len(labels) // 2]) & mask[: len(mask) // 2].bool()
        correct.sum()
    return loss


def odds(run: Callable[..., Any], batch: dict[str, Any], masked: bool, alone: bool, chosen: bool) -> Any:
    """ORPO's and CPO's concatenated_forward: trl/experimental/orpo/orpo_trainer.py, cpo/cpo_trainer.py@1.9.0."""
    names = ("input_ids", "attention_mask", "labels")
    tokens, attended, answers = (torch.cat((batch[f"chosen_{one}"], batch[f"rejected_{one}"])) for one in names)
    outputs = run(input_ids=tokens, use_cache=False, **({"attention_mask": attended} if masked else {}))
    labels = (tokens if alone else answers).clone()
    if alone:
        labels = torch.where(attended == 1, labels, -100)
    half = len(tokens) // 2
    likely = cross_entropy(outputs.logits[:half], labels[:half]) if chosen else torch.tensor(0.0)
    average = mean_log_probabilities(outputs.logits, answers, alone)
    loss = likely - functional.logsigmoid(average[:half] - average[half:]).mean()
    outputs.logits.detach()[half:, :-1].mean()
    return loss


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Of chosen rows, over copies without their last logits and first labels."""
    logits = logits[..., :-1, :].contiguous()
    labels = labels[..., 1:].contiguous()
    return functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


def mean_log_probabilities(logits: Any, labels: Any, alone: bool) -> Any:
    """get_batch_logps, of each row's completion: CPO's writes into its labels."""
    labels, logits = labels[:, 1:].clone(), logits[:, :-1, :]
    mask = labels != -100
    if alone:
        labels = torch.where(labels == -100, 0, labels)
    else:
        labels.masked_fill_(labels == -100, 0)
    per_token = log_probabilities(logits, labels)
    return (per_token * mask).sum(-1) / mask.sum(-1)


def unpaired(
    run: Callable[..., Any],
    batch: dict[str, Any],
    masked: bool,
    reference: Callable[..., Any],
    bare: Callable[[], AbstractContextManager[Any]],
) -> Any:
    """KTOTrainer._compute_loss, all rows being wanted: trl/trainer/kto_trainer.py@1.9.0."""
    tokens, completion = batch["input_ids"], batch["completion_mask"]
    other = unmatched(run, batch, masked)
    inputs = {"input_ids": tokens, **({"attention_mask": batch["attention_mask"]} if masked else {})}
    outputs = run(**inputs)
    logits, labels, mask = outputs.logits[:, :-1, :], tokens[:, 1:], completion[:, 1:]
    per_token = log_probabilities(logits, labels)
    sums = masked_sums(per_token, mask)
    with torch.no_grad(), bare():
        expected_other = unmatched(reference, batch, masked)
        expected = reference(**inputs)
    with torch.no_grad():
        expected_per_token = log_probabilities(expected.logits[:, :-1, :], labels)
        expected_sums = masked_sums(expected_per_token, mask)
    divergence = (other - expected_other).mean().clamp(min=0)
    loss = (1 - torch.sigmoid(0.1 * (sums - expected_sums - divergence))).mean()
    entropies = entropy(logits.detach())
    (entropies * mask).sum()
    every = torch.arange(len(tokens))
    chosen, where = logits.detach().index_select(0, every), mask.index_select(0, every)
    inside(chosen, where).mean(-1).sum()
    return loss


def unmatched(run: Callable[..., Any], batch: dict[str, Any], masked: bool) -> Any:
    """KTOTrainer._compute_kl_logps: rows with answers to other prompts."""
    inputs = {"input_ids": batch["KL_input_ids"]}
    if masked:
        inputs["attention_mask"] = batch["KL_attention_mask"]
    with torch.no_grad():
        logits = run(**inputs).logits
        per_token = log_probabilities(logits[:, :-1, :], batch["KL_input_ids"][:, 1:])
        return masked_sums(per_token, batch["KL_completion_mask"][:, 1:])


def inside(logits: Any, mask: Any) -> Any:
    """The logits of tokens of completions, by their places: aten/src/ATen/native/IndexingUtils.h@2.13.0."""
    where = mask.bool()
    count = where.numel()
    places = [torch.empty(count, 2, dtype=torch.long)]
    found = torch.empty(count, logits.shape[-1])
    del where, places
    return found
