# pyright: basic, reportMissingImports=false
"""Images for recorded steps: what processors return, and what of CUDA's operations a CPU does otherwise."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import transformers.masking_utils as masking
from torch._subclasses.fake_tensor import FakeTensor
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.internvl import modeling_internvl
from transformers.models.llava import modeling_llava
from transformers.models.mistral3 import modeling_mistral3

from advisor.memory.towers import clips
from advisor.tracing.modules import FLASH

from .emulating import model_of, run_of

CHECKED = (modeling_gemma3, modeling_internvl, modeling_llava, modeling_mistral3)
"""Modules that compare the number of places for images with that of features."""


class Scatter(torch.autograd.Function):
    """aten/src/ATen/native/cuda/IndexKernel.cpp, masked_scatter__cuda, masked_select_cuda; Nonzero.cu@2.13.0."""

    @staticmethod
    def forward(context: Any, inputs: Any, mask: Any, features: Any) -> Any:
        result = torch.empty_like(inputs)
        sums = torch.empty(inputs.shape, dtype=torch.long)
        whole = torch.empty(inputs.shape, dtype=torch.bool)
        del sums, whole
        context.save_for_backward(mask)
        context.size = features.shape
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        (_mask,) = context.saved_tensors
        outside = torch.empty_like(gradient) if context.needs_input_grad[0] else None
        if not context.needs_input_grad[2]:
            return outside, None, None
        whole = torch.empty(gradient.shape, dtype=torch.bool)
        places = torch.empty(context.size.numel(), 3, dtype=torch.long)
        del whole
        inside = torch.empty(context.size, dtype=gradient.dtype)
        del places
        return outside, None, inside


def scattered(inputs: Any, mask: Any, features: Any) -> Any:
    """``Tensor.masked_scatter``."""
    return Scatter.apply(inputs, mask, features)


def images_of(setting: dict[str, Any]) -> dict[str, Any]:
    """What the processor returns for a batch besides its words."""
    if not setting["images"]:
        return {}
    run = run_of(setting)
    model = model_of(setting)
    assert model is not None and run.images is not None
    tower = model.towers[0]
    count, _ = tower.grid.sequences(run.images.width, run.images.height)
    sequences = run.micro_batch_size * clips(run.images, tower) * count
    sides = (run.images.height, run.images.width) if tower.grid.rule == "longest" else (tower.grid.side,) * 2
    found: dict[str, Any] = {"pixel_values": torch.empty(sequences, 3, *sides)}
    if tower.grid.rule == "longest":
        found["image_sizes"] = [sides] * sequences
    if model.model_type == "gemma3":
        found["token_type_ids"] = torch.empty(run.micro_batch_size, run.sequence_len, dtype=torch.long)
    return found


def no_padding(attention_mask: Any = None, **_options: Any) -> None:
    """masking_utils.py, flash_attention_mask@5.16.1, of rows that are full."""
    if attention_mask is not None:
        attention_mask.all()


@contextmanager
def seeing(setting: dict[str, Any]) -> Iterator[None]:
    """Inside, features take their places as on CUDA, and no value of a fake tensor is asked for."""
    with ExitStack() as stack:
        if setting["images"]:
            stack.enter_context(mock.patch.object(torch.Tensor, "masked_scatter", scattered))
            stack.enter_context(mock.patch.dict(masking.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, {FLASH: no_padding}))
            for module in CHECKED:
                stack.enter_context(mock.patch.object(module, "torch_compilable_check", lambda *_: None))
        yield
