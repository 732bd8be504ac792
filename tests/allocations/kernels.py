# pyright: basic, reportMissingImports=false
"""Kernels that only a GPU has, by the tensors that they make, in the order of their sources."""

from types import MethodType
from typing import Any

import torch
import torch.nn.functional as functional
import torch.nn.utils.parametrize as parametrize
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.utils.generic import ModelOutput

from .liger import fused_linear


class CutCrossEntropy(torch.autograd.Function):
    """cut_cross_entropy/cce.py, cce_lse_forward.py, indexed_dot.py, cce_backward.py (axolotl-ai-cloud)."""

    @staticmethod
    def forward(context: Any, hidden: Any, weight: Any, places: Any) -> Any:
        count, words = places.numel(), weight.shape[0]
        sums = torch.empty(count, dtype=torch.float32)
        locks = torch.empty(-(-count // 128), dtype=torch.int32)
        means = torch.empty(words, dtype=torch.float32)
        del locks
        scores = torch.empty(count, dtype=torch.float32)
        loss = scores.add_(sums).sum()
        context.save_for_backward(hidden, weight, sums, places, means)
        return loss

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        hidden, weight, sums, _places, means = context.saved_tensors
        values, order = torch.empty(means.shape), torch.empty(means.shape, dtype=torch.long)
        del values
        ordered = torch.empty(means.shape, dtype=torch.int32)
        del order
        by_width = -(-hidden.shape[1] // 64)
        trained = context.needs_input_grad[1]
        of_hidden = torch.empty_like(hidden)
        of_weight = torch.empty_like(weight) if trained else None
        locks = [torch.empty(-(-sums.numel() // 128), by_width, dtype=torch.int32)]
        if trained:
            locks.append(torch.empty(-(-weight.shape[0] // 128), by_width, dtype=torch.int32))
        del ordered, locks
        return of_hidden, of_weight, None


def predicted(labels: Any) -> Any:
    """cut_cross_entropy/utils.py, _build_flat_valids: every token but the first of a row."""
    shifted = labels[..., 1:]
    wanted = shifted != -100
    places = torch.empty(shifted.numel(), 2, dtype=torch.long)
    del wanted
    places = places.to(torch.int32)
    return places.sum(1)


def cut(hidden: Any, weight: Any, labels: Any) -> Any:
    """The sum over tokens."""
    return CutCrossEntropy.apply(hidden.flatten(0, -2), weight, predicted(labels))


class HalfLayerNorm(torch.autograd.Function):
    """aten/src/ATen/native/cuda/layer_norm_kernel.cu@2.13.0: statistics in fp32, where the CPU has half precision."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, bias: Any) -> Any:
        result = torch.empty_like(x)
        statistics = [torch.empty(x.shape[:-1], dtype=torch.float32) for _ in range(2)]
        context.save_for_backward(x, weight, bias, *statistics)
        return result

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        saved = context.saved_tensors
        needs = context.needs_input_grad
        return tuple(torch.empty_like(one) if needed else None for one, needed in zip(saved, needs, strict=False))


FULL_LAYER_NORM = functional.layer_norm


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """In any precision, as CUDA has it."""
    if x.dtype == torch.float32:
        return FULL_LAYER_NORM(x, shape, weight, bias, eps)
    return HalfLayerNorm.apply(x, weight, bias)


class Efficient(torch.autograd.Function):
    """aten/src/ATen/native/transformers/cuda/attention.cu, attention_backward.cu@2.13.0: heads up to 128 wide."""

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any, bias: Any) -> Any:
        rows, heads, length, _ = query.shape
        output = torch.empty_like(query.transpose(1, 2), memory_format=torch.contiguous_format)
        if not any(context.needs_input_grad):
            return output
        statistics = torch.empty(rows, heads, -(-length // 32) * 32)
        context.save_for_backward(query, key, value, bias, output, statistics)
        return output

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        query, *_ = context.saved_tensors
        rows, heads, length, width = query.shape
        shape = (rows, length, heads, width)
        gradients = [torch.empty(shape, dtype=query.dtype).transpose(1, 2) for _ in range(3)]
        sums = torch.empty(rows, heads, length)
        exact = torch.empty(rows, heads, -(-length // 128) * 128, -(-width // 32) * 32)
        del sums, exact
        return (*gradients, None)


def under_mask(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """aten/src/ATen/native/transformers/attention.cpp, convert_boolean_attn_mask: a mask in the queries' precision."""
    hidden = mask.logical_not()
    bias = torch.empty_like(hidden, dtype=query.dtype)
    del hidden
    return Efficient.apply(query, key, value, bias).transpose(1, 2)


class EightBitProduct(torch.autograd.Function):
    """bitsandbytes/autograd/_functions.py, MatMul8bitLt; backends/cuda/ops.py@0.50.2: no column has an outlier."""

    @staticmethod
    def forward(context: Any, x: Any, layer: Any) -> Any:
        single = x.to(torch.float16)
        scales, codes = torch.empty(x.shape[:-1]), torch.empty(x.shape, dtype=torch.int8)
        large = single.abs() >= 6.0
        found = large.any()
        del found, large, single
        sums = torch.empty(*x.shape[:-1], layer.out_features, dtype=torch.int32)
        halves = torch.empty_like(sums, dtype=torch.float16)
        result = halves.to(x.dtype)
        del sums, halves, codes, scales
        context.layer, context.inputs = layer, x
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        codes, scales, width = context.layer.weight, context.layer.scales, context.inputs.dtype
        whole = codes.to(width, copy=True).mul_(scales.unsqueeze(1).mul(1.0 / 127.0))
        return torch.matmul(gradient, whole), None


class EightBit(torch.nn.Module):
    """bitsandbytes/nn/modules.py, Linear8bitLt@0.50.2."""

    def __init__(self, base: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = base.in_features, base.out_features
        self.weight = torch.nn.Parameter(torch.empty_like(base.weight, dtype=torch.int8), requires_grad=False)
        self.register_buffer("scales", torch.empty(base.out_features))
        self.register_parameter("bias", None)

    def forward(self, x: Any) -> Any:
        return EightBitProduct.apply(x, self)


SCORES = {"cut": cut, "liger-fused": fused_linear}


def scored(model: Any, loss: str) -> None:
    """Gives a model a forward that makes no logits."""

    def forward(self: Any, input_ids: Any, labels: Any, num_items_in_batch: Any, **options: Any) -> Any:
        outputs = self.model(input_ids=input_ids, **options)
        total = SCORES[loss](outputs.last_hidden_state, self.lm_head.weight, labels)
        mean = total / num_items_in_batch
        if (seen := getattr(outputs, "image_hidden_states", None)) is not None:
            return ModelOutput(loss=mean, image_hidden_states=seen)
        return CausalLMOutputWithPast(loss=mean)

    model.forward = MethodType(forward, model)


class GroupedProduct(torch.autograd.Function):
    """aten/src/ATen/native/cuda/GroupedBlas.cpp@2.13.0, in precisions that its function for shapes does not take."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, ends: Any) -> Any:
        kept = [x if context.needs_input_grad[1] else None, weight if context.needs_input_grad[0] else None]
        context.save_for_backward(*kept, ends)
        context.sizes = x.shape, weight.shape
        return x.new_empty(x.shape[0], weight.shape[-1])

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        sizes = zip(context.sizes, context.needs_input_grad, strict=False)
        found = [gradient.new_empty(size) if needed else None for size, needed in reversed(list(sizes))]
        return found[1], found[0], None


HALF_GROUPED = functional.grouped_mm


def grouped(x: Any, weight: Any, *, offs: Any) -> Any:
    """In any precision, as CUDA has it."""
    if x.dtype == torch.bfloat16:
        return HALF_GROUPED(x, weight, offs=offs)
    return GroupedProduct.apply(x, weight, offs)


class Unpacked(torch.nn.Module):
    """bitsandbytes/nn/parametrize.py, Bnb4bitParametrization@0.50.2, with nested statistics."""

    def __init__(self, shape: Any) -> None:
        super().__init__()
        self.shape, count = shape, shape.numel()
        self.register_buffer("absmax", torch.empty(count // 64, dtype=torch.uint8))
        self.register_buffer("nested", torch.empty(-(-count // 64 // 256)))

    def forward(self, _codes: Any) -> Any:
        statistics = torch.empty(self.absmax.numel(), dtype=torch.float32)
        weight = torch.empty(self.shape, dtype=torch.bfloat16)
        del statistics
        return weight


class UnpackedBytes(torch.nn.Module):
    """axolotl/monkeypatch/moe_quant.py, Bnb8bitParametrization@0.19.0; int8_vectorwise_dequant of bitsandbytes."""

    def __init__(self, shape: Any) -> None:
        super().__init__()
        self.register_buffer("rows", torch.empty(shape[:-1].numel(), 1))

    def forward(self, codes: Any) -> Any:
        return (codes.view(-1, codes.shape[-1]) * self.rows * (1 / 127)).view(codes.shape)


def cached(_module: Any, *_given: Any) -> None:
    """From here, what is unpacked is kept."""
    parametrize._cache_enabled += 1


def emptied(_module: Any, *_given: Any) -> None:
    """To here."""
    parametrize._cache_enabled -= 1
    parametrize._cache = {}


def pack_experts(model: Any, kind: type[Any]) -> None:
    """Stacked experts in 4 or 8 bits: axolotl/monkeypatch/moe_quant.py@0.19.0."""
    for module in list(model.modules()):
        stacks = [name for name, weight in module._parameters.items() if weight is not None and weight.dim() == 3]
        if not stacks or not type(module).__name__.endswith("Experts"):
            continue
        for name in stacks:
            shape = module._parameters[name].shape
            half = torch.empty(shape.numel() // 2, 1, dtype=torch.uint8)
            codes = torch.empty(shape, dtype=torch.int8) if kind is EightBit else half
            unpacked = UnpackedBytes(shape) if kind is EightBit else Unpacked(shape)
            module._parameters[name] = torch.nn.Parameter(codes, requires_grad=False)
            parametrize.register_parametrization(module, name, unpacked, unsafe=True)
        module.register_forward_pre_hook(cached)
        module.register_forward_hook(emptied, always_call=True)
