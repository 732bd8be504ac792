# pyright: basic, reportMissingImports=false
"""TRL's steps from a model to its loss of preferences: trl/trainer/dpo_trainer.py, utils.py@1.9.0.

All tokens but a row's first belong to completions. Numbers of rows and of batches are left out.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as functional

CHUNK = 128


class Gather(torch.autograd.Function):
    """aten/src/ATen/native/TensorAdvancedIndexing.cpp, gather_backward@2.13.0: in place, but for fake tensors."""

    @staticmethod
    def forward(context: Any, values: Any, index: Any) -> Any:
        context.save_for_backward(values, index)
        return torch.gather(values, -1, index)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        values, index = context.saved_tensors
        return torch.zeros(values.shape, dtype=values.dtype).scatter_add_(-1, index, gradient), None


class LogSumExp(torch.autograd.Function):
    """aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl; FunctionsManual.cpp, logsumexp_backward@2.13.0."""

    @staticmethod
    def forward(context: Any, values: Any) -> Any:
        largest = values.amax(-1, keepdim=True)
        flat = largest.squeeze(-1)
        sizes = flat.abs()
        infinite = sizes == float("inf")
        del sizes
        flat.masked_fill_(infinite, 0)
        del infinite
        powers = (values - largest).exp_()
        result = powers.sum(-1)
        del powers
        result.log_().add_(flat)
        context.save_for_backward(values, result)
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        values, result = context.saved_tensors
        shifted = values - result.unsqueeze(-1)  # C++ keeps both to the end of the expression
        powers = shifted.exp()
        return gradient.unsqueeze(-1) * powers


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
    """selective_log_softmax, in fp32."""
    index = labels.unsqueeze(-1)
    selected = Gather.apply(logits, index)
    sums = torch.stack([LogSumExp.apply(row) for row in logits])
    return (selected - sums.unsqueeze(-1)).squeeze(-1)


def entropy(logits: Any) -> Any:
    """entropy_from_logits."""
    flat = logits.reshape(-1, logits.shape[-1])
    found = []
    for chunk in flat.split(CHUNK, dim=0):
        logarithms = functional.log_softmax(chunk, dim=-1)
        one = -(torch.exp(logarithms) * logarithms).sum(-1)
        found.append(one)
    return torch.cat(found, dim=0).reshape(logits.shape[:-1])


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


def inside(logits: Any, mask: Any) -> Any:
    """The logits of tokens of completions, by their places: aten/src/ATen/native/IndexingUtils.h@2.13.0."""
    where = mask.bool()
    count = where.numel()
    places = [torch.empty(count, 2, dtype=torch.long)]
    del where
    found = torch.empty(count, logits.shape[-1])
    del places
    return found
