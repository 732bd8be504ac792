# pyright: basic, reportMissingImports=false
"""What kernels outside of torch keep, where transformers would fall back to plain operations without a GPU."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from advisor.tracing.state_spaces import chunk_scan, selective_scan, split_scan

CHUNK = 64
"""Tokens that the delta rule takes at once: fla/ops/gated_delta_rule/chunk.py@0.5.2."""


class DeltaRule(torch.autograd.Function):
    """The gated delta rule of flash-linear-attention: fla/ops/gated_delta_rule/chunk.py@0.5.2.

    Kept: its inputs in rows, normed queries and keys with one fp32 number a head, summed gates, a triangle a chunk.
    Backward computes states and new values again.
    """

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any, gate: Any, beta: Any, normed: bool) -> Any:
        """The output, as wide as the values."""
        heads = key.shape[:-1]
        norms = [torch.empty(heads, dtype=torch.float32) for _ in range(2 if normed else 0)]
        if normed:
            query, key = query.clone(), key.clone()
        triangle = key.new_empty(*heads, CHUNK)
        value = value.contiguous()  # fla/utils, input_guard
        context.save_for_backward(query, key, value, torch.empty_like(gate), beta, triangle, *norms)
        return torch.empty_like(value)

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        """Gradients of the inputs."""
        query, key, value, gate, beta, *_ = context.saved_tensors
        rows, length, heads, width = key.shape
        states = [key.new_empty(rows, -(-length // CHUNK), heads, width, value.shape[-1]) for _ in range(2)]
        again = [torch.empty_like(one) for one in (key, value, value, value, key)]
        gradients = [torch.empty_like(one) for one in (query, key, value, gate, beta)]
        del states, again
        return *gradients, None


class Convolution(torch.autograd.Function):
    """The causal convolution of causal-conv1d: its input is kept, and its activation computed again."""

    @staticmethod
    def forward(context: Any, hidden: Any, weight: Any, bias: Any) -> Any:
        """The output, as large as the input."""
        context.save_for_backward(hidden, weight, bias)
        return torch.empty_like(hidden)

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        """Gradients of input, weight and bias."""
        hidden, weight, bias = context.saved_tensors
        return torch.empty_like(hidden), torch.empty_like(weight), None if bias is None else torch.empty_like(bias)


def delta_rule(
    query: Any, key: Any, value: Any, g: Any, beta: Any, use_qk_l2norm_in_kernel: bool = False, **_options: Any
) -> tuple[Any, None]:
    """In place of ``chunk_gated_delta_rule``."""
    return DeltaRule.apply(query, key, value, g, beta, use_qk_l2norm_in_kernel), None


def convolution(hidden_states: Any, weight: Any, bias: Any = None, *_activation: Any, **_options: Any) -> Any:
    """In place of ``causal_conv1d_fn``."""
    return Convolution.apply(hidden_states, weight, bias)


FUSED = "mamba2_split_conv1d_scan_combined"
"""The kernel that multiplies by a weight itself, which it cannot where that is quantized.

axolotl/monkeypatch/models/nemotron_h/modeling.py:37-67@0.19.0 then goes without it.
"""
STAND_INS = {
    "torch_chunk_gated_delta_rule": delta_rule,
    "causal_conv1d_fn": convolution,
    FUSED: split_scan,
    "mamba2_chunk_scan": chunk_scan,
    "mamba_selective_scan": selective_scan,
}


@contextmanager
def stand_ins(model: Any, *, quantized: bool = False) -> Iterator[None]:
    """Inside, the modules of the model call the stand-ins."""
    with ExitStack() as stack:
        for module in {sys.modules[type(one).__module__] for one in model.modules()}:
            for name, stand_in in STAND_INS.items():
                if hasattr(module, name) and not (quantized and name == FUSED):
                    stack.enter_context(mock.patch.object(module, name, stand_in))
        yield


def has_kernel(model: Any, names: tuple[str, ...]) -> bool:
    """Whether a mixer of the model calls one of these."""
    modules = {sys.modules[type(one).__module__] for one in model.modules()}
    return any(hasattr(module, name) for module in modules for name in names)
