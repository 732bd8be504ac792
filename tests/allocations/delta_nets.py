# pyright: basic, reportMissingImports=false
"""Delta nets as flash-linear-attention's kernels compute them, and axolotl's layers for packed rows."""

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

CHUNK = 64


class DeltaRule(torch.autograd.Function):
    """fla/ops/gated_delta_rule/chunk.py, ChunkGatedDeltaRuleFunction@0.5.2, without a state before and after."""

    @staticmethod
    def forward(context: Any, *given: Any) -> Any:
        query, key, value, gate, beta = copies = [one.contiguous() for one in given]
        query, of_query = normed(query)
        key, of_key = normed(key)
        summed = torch.empty_like(gate, dtype=torch.float32)
        triangle = torch.zeros(*key.shape[:-1], CHUNK, dtype=key.dtype)
        states = carried(key, value)
        result = torch.empty_like(value)
        del states, copies
        context.save_for_backward(query, of_query, key, of_key, value, summed, beta, triangle)
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        query, _of_query, key, _of_key, value, summed, beta, _triangle = context.saved_tensors
        gradient = gradient.contiguous()
        of_query, of_key, of_value, of_beta, of_gate = gradients(key, value, summed, beta, gradient)
        of_query = torch.empty_like(query)
        of_key = torch.empty_like(key)
        return of_query, of_key, of_value, of_gate, of_beta


def gradients(key: Any, value: Any, summed: Any, beta: Any, gradient: Any) -> Any:
    """chunk_gated_delta_rule_bwd@0.5.2, on a card that takes a head's keys at once."""
    again = carried(key, value)
    of_new = torch.empty_like(gradient)
    rows, length, heads, width = key.shape
    of_states = key.new_empty(rows, -(-length // CHUNK), heads, width, value.shape[-1])
    of_new = torch.empty_like(of_new)
    of_query, of_key = torch.empty_like(key), torch.empty_like(key)
    parts = torch.empty(1, *summed.shape)
    of_w = torch.empty_like(key)
    of_gate = parts.sum(0)
    del parts
    second, of_value = torch.empty_like(key), torch.empty_like(value)
    more, of_beta = torch.empty_like(summed), torch.empty_like(beta)
    del of_new
    of_gate = torch.empty_like(of_gate)
    del again, of_states, of_w, second, more
    return of_query, of_key, of_value, of_beta, of_gate


def normed(x: Any) -> Any:
    """l2norm_fwd: a root for each head."""
    return torch.empty_like(x), torch.empty(x.shape[:-1])


def carried(key: Any, value: Any) -> Any:
    """recompute_w_u_fwd, chunk_gated_delta_rule_fwd_h: both sides of the rule, the states and new values."""
    rows, length, heads, width = key.shape
    both = torch.empty_like(key), torch.empty_like(value)
    states = key.new_empty(rows, -(-length // CHUNK), heads, width, value.shape[-1])
    return *both, states, torch.empty_like(value)


def delta_rule(query: Any, key: Any, value: Any, g: Any, beta: Any, **_options: Any) -> tuple[Any, None]:
    """In place of ``chunk_gated_delta_rule``."""
    return DeltaRule.apply(query, key, value, g, beta), None


class Convolution(torch.autograd.Function):
    """fla/modules/conv/triton/ops.py, CausalConv1dFunction@0.5.2: backward convolves again, by parts of the weight."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        context.save_for_backward(x, weight)
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        x, weight = context.saved_tensors
        again = torch.empty_like(x)
        of_x = torch.empty_like(x)
        parts = torch.empty(x.shape[0] * -(-x.shape[1] // CHUNK), *weight.shape, dtype=torch.float32)
        of_weight = parts.sum(0).to(weight.dtype)
        del parts, again
        return of_x, of_weight


def convolution(x: Any, weight: Any, **_options: Any) -> tuple[Any, None]:
    """In place of fla's ``causal_conv1d``."""
    return Convolution.apply(x, weight), None


def nearest(position_ids: Any) -> Any:
    """In place of ``get_cu_seqlens``: where packed rows begin depends on the data."""
    return torch.empty(2, dtype=torch.int32)


@contextmanager
def delta_nets(model: Any, packed: bool) -> Iterator[None]:
    """The rule by its kernel; and in packed rows axolotl's layers, whose convolution is another one."""
    name = model.config.get_text_config().model_type.removesuffix("_text")
    if name not in {"qwen3_5", "qwen3_5_moe"}:
        yield
        return
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(module, "torch_chunk_gated_delta_rule", delta_rule))
        if packed:
            stack.enter_context(in_axolotl(module, "Qwen3_5" if name == "qwen3_5" else "Qwen3_5Moe"))
        yield


@contextmanager
def in_axolotl(module: Any, prefix: str) -> Iterator[None]:
    """axolotl/monkeypatch/models/qwen3_5/modeling.py@0.19.0."""
    importlib.import_module("tests.oracles.axolotl_kernels")  # without it axolotl asks for what only a GPU has
    modeling = importlib.import_module("axolotl.monkeypatch.models.qwen3_5.modeling")
    kernels = {"fla_causal_conv1d": convolution, "fla_chunk_gated_delta_rule": delta_rule, "get_cu_seqlens": nearest}
    forwards = {
        f"{prefix}DecoderLayer": modeling._patched_decoder_forward,
        f"{prefix}GatedDeltaNet": modeling._make_qwen3_5_gated_delta_forward(module),
    }
    with ExitStack() as stack:
        stack.enter_context(mock.patch.multiple(modeling, **kernels))
        for name, forward in forwards.items():
            stack.enter_context(mock.patch.object(getattr(module, name), "forward", forward))
        yield
