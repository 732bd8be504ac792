# pyright: basic
"""Liger's functions without their kernels: liger_kernel/ops@0.8.1."""

from contextlib import ExitStack
from types import MethodType
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as functional
from torch.autograd import Function

PROCESSORS = 132


class RMSNorm(Function):
    """rms_norm.py, LigerRMSNormFunction."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, in_place: bool) -> Any:
        x = x.contiguous()
        flat = x.view(-1, x.shape[-1])
        result = torch.empty(flat.shape, dtype=x.dtype)
        roots = torch.empty(flat.shape[0], dtype=torch.float32)
        context.in_place = in_place
        context.save_for_backward(flat, weight, roots)
        return result.view(*x.shape)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        gradient = gradient.contiguous()
        flat, weight, _roots = context.saved_tensors
        partial = torch.empty(PROCESSORS, weight.numel(), dtype=torch.float32)
        over = gradient.view(flat.shape) if context.in_place else torch.zeros_like(gradient.view(flat.shape))
        of_weight = partial.sum(dim=0).to(weight.dtype)
        return over.view(*gradient.shape), of_weight, None


class Gated(Function):
    """swiglu.py, LigerSiLUMulFunction; geglu.py, LigerGELUMulFunction."""

    @staticmethod
    def forward(context: Any, gate: Any, up: Any) -> Any:
        gate, up = gate.contiguous(), up.contiguous()
        shape = gate.shape
        gate, up = gate.view(-1, shape[-1]), up.view(-1, shape[-1])
        result = torch.empty_like(gate)
        context.save_for_backward(gate, up)
        return result.view(shape)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        gradient = gradient.contiguous()
        gate, up = context.saved_tensors
        return gate.view(gradient.shape), up.view(gradient.shape)


class Rotation(Function):
    """rope.py, LigerRopeFunction."""

    @staticmethod
    def forward(context: Any, query: Any, key: Any, cosines: Any, sines: Any) -> Any:
        query, key = query.transpose(1, 2).contiguous(), key.transpose(1, 2).contiguous()
        context.save_for_backward(cosines.contiguous(), sines.contiguous())
        return query.transpose(1, 2), key.transpose(1, 2)

    @staticmethod
    def backward(context: Any, of_query: Any, of_key: Any) -> Any:
        _tables = context.saved_tensors
        of_query, of_key = of_query.transpose(1, 2).contiguous(), of_key.transpose(1, 2).contiguous()
        return of_query.transpose(1, 2), of_key.transpose(1, 2), None, None


class CrossEntropy(Function):
    """cross_entropy.py, LigerCrossEntropyFunction."""

    @staticmethod
    def forward(context: Any, logits: Any, labels: Any) -> Any:
        each = torch.zeros(logits.shape[0], dtype=torch.float32)
        asked = labels != -100
        for _ in range(2):  # the largest and the smallest are looked at
            (labels * asked).max()
        context.save_for_backward(logits.detach())
        return each.sum()

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        return context.saved_tensors[0], None


class FusedLinear(Function):
    """fused_linear_cross_entropy.py, LigerFusedLinearCrossEntropyFunction."""

    @staticmethod
    def forward(context: Any, hidden: Any, weight: Any, labels: Any) -> Any:
        (tokens, width), words = hidden.shape, weight.shape[0]
        size = 1 << (-(-tokens // -(-words // width)) - 1).bit_length()
        of_hidden = torch.zeros_like(hidden)
        of_weight = torch.zeros_like(weight) if context.needs_input_grad[1] else None
        each = torch.zeros(tokens, dtype=torch.float32)
        _asked = labels != -100
        for start in range(0, tokens, size):
            some = hidden[start : start + size]
            logits = some @ weight.t()
            gradient = logits
            of_hidden[start : start + size] = gradient @ weight
            if of_weight is not None:
                _turned = gradient.t()
                of_weight += torch.mm(gradient.t(), some).float()
        loss = each.sum()
        context.save_for_backward(of_hidden.detach(), None if of_weight is None else of_weight.detach())
        return loss

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        return *context.saved_tensors, None


def fused_linear(hidden: Any, weight: Any, labels: Any) -> Any:
    """transformers/model/loss_utils.py, LigerForCausalLMLoss."""
    labels = functional.pad(labels, (0, 1), value=-100)
    shifted = labels[..., 1:].contiguous()
    return FusedLinear.apply(hidden.view(-1, hidden.shape[-1]), weight, shifted.view(-1))


OUT_OF_PLACE = ("Gemma2", "Gemma3", "Olmo", "Glm4")


def patch_layers(model: Any, kernels: tuple[str, ...]) -> None:
    """Gives modules the forwards of Liger's: transformers/rms_norm.py, swiglu.py, geglu.py."""

    def norm(self: Any, x: Any) -> Any:
        return RMSNorm.apply(x, self.weight, not type(self).__name__.startswith(OUT_OF_PLACE))

    def feed(self: Any, x: Any) -> Any:
        return self.down_proj(Gated.apply(self.gate_proj(x), self.up_proj(x)))

    for module in model.modules():
        name = type(module).__name__
        if "rms_norm" in kernels and name.endswith("RMSNorm"):
            module.forward = MethodType(norm, module)
        if "glu" in kernels and name.endswith("MLP"):
            module.forward = MethodType(feed, module)


def rotated(query: Any, key: Any, cosines: Any, sines: Any, *_rest: Any, **_options: Any) -> Any:
    """transformers/rope.py."""
    return Rotation.apply(query, key, cosines, sines)


def cross_entropy(logits: Any, labels: Any, **_options: Any) -> Any:
    """transformers/functional.py."""
    return CrossEntropy.apply(logits, labels)


def patched(setting: dict[str, Any]) -> Any:
    """What Liger patches in modules of transformers."""
    from importlib import import_module

    stack = ExitStack()
    if "rope" in setting["liger"]:
        kind = setting["config"]["model_type"].removesuffix("_text")
        module = import_module(f"transformers.models.{kind}.modeling_{kind}")
        stack.enter_context(mock.patch.object(module, "apply_rotary_pos_emb", rotated))
    if setting["loss"] == "liger":
        stack.enter_context(mock.patch.object(functional, "cross_entropy", cross_entropy))
    return stack
