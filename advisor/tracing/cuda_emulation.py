# pyright: basic, reportMissingImports=false
"""Emulates on CPU fake tensors what CUDA does differently."""

from typing import Any

import torch
import torch.nn.functional as functional
from torch.overrides import TorchFunctionMode

CUDA_RUNS_IN_FP32 = {
    functional.layer_norm,
    torch.layer_norm,
    functional.group_norm,
    torch.pow,
    torch.Tensor.pow,
    torch.Tensor.__pow__,
    torch.square,  # a composite of pow: aten/src/ATen/native/UnaryOps.cpp@2.13.0
    torch.Tensor.square,
    torch.exp,
    torch.Tensor.exp,
    torch.expm1,
    torch.Tensor.expm1,
    torch.rsqrt,
    torch.Tensor.rsqrt,
    functional.softplus,
}
"""Of autocast's fp32 list for CUDA (torch/amp docs, 2.13.0), what decoder layers call and CPU autocast leaves
alone."""


SOFTMAX = {functional.softmax, torch.softmax, torch.Tensor.softmax}
"""Likewise, without a copy of their input: ATen/autocast_mode.h, fp32_set_opt_dtype@2.13.0."""


class CudaHabits(TorchFunctionMode):
    """Dropout with a mask of one byte, and layer norms in fp32 under autocast, as CUDA has them."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in CUDA_RUNS_IN_FP32 and torch.is_autocast_enabled("cpu"):
            args = [self.single(value) for value in args]
            kwargs = {name: self.single(value) for name, value in kwargs.items()}
        if function in SOFTMAX and kwargs.get("dtype") is None and torch.is_autocast_enabled("cpu"):
            kwargs = {**kwargs, "dtype": torch.float32}
        if function is functional.scaled_dot_product_attention and _needs_stand_in(*args, **kwargs):
            return stand_in(*args)
        return function(*args, **kwargs)

    @staticmethod
    def single(value: Any) -> Any:
        """Half precision turned to fp32."""
        half = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
        return value.float() if half else value


class _FusedAttention(torch.autograd.Function):
    """What a fused kernel keeps, where a CPU build would fall back to plain operations and a GPU would not."""

    @staticmethod
    def forward(context: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """The output, in the layout of the queries."""
        by_token = query.transpose(1, 2)
        output = torch.empty_like(by_token[..., :1].expand(*by_token.shape[:-1], value.shape[-1]))
        output = output.transpose(1, 2)
        statistics = torch.empty(query.shape[:-1], dtype=torch.float32)
        context.save_for_backward(query, key, value, output, statistics)
        return output

    @staticmethod
    def backward(context: Any, _gradient: torch.Tensor) -> Any:
        """Gradients of queries, keys and values."""
        query, key, value, _output, _statistics = context.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _needs_stand_in(
    query: torch.Tensor,  # noqa: ARG001
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    **_options: Any,
) -> bool:
    """Whether the CPU kernel refuses: dropout, or values of another width than keys."""
    return attn_mask is None and (dropout_p > 0 or key.shape[-1] != value.shape[-1])


def stand_in(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_options: Any) -> Any:
    """The fused kernel, in half precision under autocast."""
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (one.to(torch.bfloat16) for one in (query, key, value))
    return _FusedAttention.apply(query, key, value)


def cuda_dropout(
    input: torch.Tensor,  # noqa: A002
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,  # noqa: ARG001
) -> torch.Tensor:
    """Dropout as CUDA computes it: the mask is kept as bool."""
    return torch.ops.aten.native_dropout(input, p, True)[0] if training and p > 0 else input
