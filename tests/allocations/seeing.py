# pyright: basic, reportMissingImports=false
"""Images for recorded steps: what processors return, and what of CUDA's operations a CPU does otherwise."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import isqrt
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as functional
import transformers.masking_utils as masking
from torch._subclasses.fake_tensor import FakeTensor
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.glm4v import modeling_glm4v
from transformers.models.internvl import modeling_internvl
from transformers.models.lfm2 import modeling_lfm2
from transformers.models.lfm2_vl import modeling_lfm2_vl
from transformers.models.llava import modeling_llava
from transformers.models.mistral3 import modeling_mistral3
from transformers.models.pixtral import modeling_pixtral
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl
from transformers.models.qwen2_vl import modeling_qwen2_vl
from transformers.models.qwen3_5 import modeling_qwen3_5
from transformers.models.siglip2 import modeling_siglip2
from transformers.models.smolvlm import modeling_smolvlm

from advisor.memory.towers import clips
from advisor.tracing.modules import FLASH

from .emulating import model_of, run_of
from .grids import MODELS, grids_of, put_by_mask, reordered, seen_by_grids

CHECKED = (
    modeling_gemma3,
    modeling_glm4v,
    modeling_internvl,
    modeling_lfm2_vl,
    modeling_llava,
    modeling_mistral3,
    modeling_qwen2_5_vl,
    modeling_qwen2_vl,
    modeling_qwen3_5,
    modeling_smolvlm,
)
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


class StridedLayerNorm(torch.autograd.Function):
    """aten/src/ATen/native/cuda/layer_norm_kernel.cu@2.13.0: what is not contiguous is copied first, each way."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, bias: Any) -> Any:
        copy = x.contiguous()
        result = torch.empty(x.shape, dtype=x.dtype)
        statistics = [torch.empty(x.shape[:-1], dtype=torch.float32) for _ in range(2)]
        del copy
        context.save_for_backward(x, weight, bias, *statistics)
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        x, _weight, _bias, *_statistics = context.saved_tensors
        copies = [one.contiguous() for one in (gradient, x)]
        result = torch.empty(x.shape, dtype=x.dtype)
        del copies
        return result, None, None


def layer_norm(x: Any, _shape: Any, weight: Any = None, bias: Any = None, _eps: float = 1e-5) -> Any:
    """``functional.layer_norm`` of a frozen encoder, which CUDA's autocast runs in fp32."""
    if torch.is_autocast_enabled("cpu"):
        return StridedLayerNorm.apply(*(one.float() for one in (x, weight, bias)))
    return StridedLayerNorm.apply(x, weight, bias)


class Unfold(torch.autograd.Function):
    """aten/src/ATen/native/cuda/Im2Col.cu, Col2Im.cu@2.13.0: without overlaps, each way from a contiguous tensor."""

    @staticmethod
    def forward(context: Any, x: Any, size: int) -> Any:
        _, channels, height, width = context.size = x.shape
        copy = x.contiguous()
        result = torch.empty(1, channels * size**2, height * width // size**2, dtype=x.dtype)
        del copy
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        copy = gradient.contiguous()
        result = torch.empty(context.size, dtype=gradient.dtype)
        del copy
        return result, None


def unfold(x: Any, kernel_size: int, stride: int) -> Any:
    """``functional.unfold``."""
    assert kernel_size == stride
    return Unfold.apply(x, kernel_size)


class Picked(torch.autograd.Function):
    """aten/src/ATen/native/cuda/Nonzero.cu, Indexing.cu, index_put_with_sort_kernel@2.13.0; none is left out."""

    @staticmethod
    def forward(context: Any, values: Any, mask: Any, count: int) -> Any:
        places = torch.empty(count, mask.dim(), dtype=torch.long)
        result = values.new_empty(count, *values.shape[mask.dim() :])
        del places
        context.save_for_backward(mask)
        context.size = values.shape
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        (mask,) = context.saved_tensors
        result = gradient.new_empty(context.size)
        places = torch.empty(mask.numel(), mask.dim(), dtype=torch.long)
        ordered = [torch.empty(mask.numel(), dtype=torch.long) for _ in range(2)]
        del places, ordered
        return result, None, None


class Put(torch.autograd.Function):
    """aten/src/ATen/native/cuda/IndexKernel.cpp, index_put_; Nonzero.cu@2.13.0, into zeros that need no gradient."""

    @staticmethod
    def forward(context: Any, base: Any, mask: Any, values: Any) -> Any:
        places = torch.empty(values.shape[0], mask.dim(), dtype=torch.long)
        del places
        context.mark_dirty(base)
        context.save_for_backward(mask)
        context.size = values.shape
        return base

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        (mask,) = context.saved_tensors
        places = torch.empty(context.size[0], mask.dim(), dtype=torch.long)
        result = gradient.new_empty(context.size)
        del places
        return None, None, result


def put(base: Any, index: Any, values: Any) -> None:
    """``Tensor[...] = ...`` by a mask, as if all were set; numbers of images are left as they are."""
    if isinstance(index, torch.Tensor):
        Put.apply(base, index, values)


TAKEN = torch.Tensor.__getitem__


def resized(_table: Any, shapes: Any, max_length: int) -> Any:
    """siglip2/modeling_siglip2.py, resize_positional_embeddings@5.16.1: one tile after the other."""
    result = torch.empty(len(shapes), max_length, _table.shape[-1], dtype=_table.dtype)
    one = None
    for _ in shapes:
        one = torch.empty(max_length, _table.shape[-1], dtype=_table.dtype)
    del one
    return result


def embedded(module: Any, pixel_values: Any, patch_attention_mask: Any) -> Any:
    """smolvlm/modeling_smolvlm.py, SmolVLMVisionEmbeddings.forward@5.16.1, but for what counts the positions."""
    patches = module.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
    places = torch.zeros(patch_attention_mask.flatten(1).shape, dtype=torch.long)
    return patches + module.position_embedding(places)


def taken(places: dict[tuple[int, ...], int], values: Any, index: Any) -> Any:
    """``Tensor[...]``, by a mask of words as if so many were set, by others as if all were, and up to a length as if it were the whole."""
    if isinstance(index, tuple) and any(isinstance(getattr(one, "stop", None), torch.Tensor) for one in index):
        return values
    masked = isinstance(index, torch.Tensor) and index.dtype == torch.bool
    return Picked.apply(values, index, places.get(index.shape, index.numel())) if masked else TAKEN(values, index)


def convolved(x: Any, weight: Any, bias: Any = None, stride: Any = 1, *_more: Any) -> Any:
    """A frozen convolution without padding, whose output is laid out as cuDNN's is."""
    halves = [one.to(torch.bfloat16) for one in (bias, weight, x) if one is not None]
    edges = zip(x.shape[2:], weight.shape[2:], stride, strict=True)
    sides = [(size - kernel) // step + 1 for size, kernel, step in edges]
    result = torch.empty(x.shape[0], weight.shape[0], *sides, dtype=torch.bfloat16)
    if not x.is_contiguous():  # aten/src/ATen/native/cudnn/ConvShared.cpp, cudnn_convolution_forward@2.13.0
        copy = torch.empty(weight.shape, dtype=torch.bfloat16)
        del copy
    del halves
    return result


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
    found: dict[str, Any] = {}
    if model.model_type == "gemma3":
        found["token_type_ids"] = torch.zeros(run.micro_batch_size, run.sequence_len, dtype=torch.long)
    if model.model_type == "lfm2_vl":
        patches = tower.grid.of_side()
        found["pixel_values"] = torch.zeros(sequences, patches, tower.entry)
        found["pixel_attention_mask"] = torch.zeros(sequences, patches, dtype=torch.int32)
        found["spatial_shapes"] = [[isqrt(patches)] * 2] * sequences
        return found
    if model.model_type in MODELS:
        found["mm_token_type_ids"] = torch.zeros(run.micro_batch_size, run.sequence_len, dtype=torch.long)
        patches = tower.grid.sequences(run.images.width, run.images.height)[1]
        found["pixel_values"] = torch.zeros(sequences * patches, tower.entry)
        return found | grids_of(setting, sequences)
    if model.model_type == "smolvlm":
        found["pixel_values"] = torch.zeros(run.micro_batch_size, sequences // run.micro_batch_size, 3, *sides)
        found["pixel_attention_mask"] = torch.zeros(*found["pixel_values"].shape[:2], *sides)
        return found
    found["pixel_values"] = torch.zeros(sequences, 3, *sides)
    if tower.grid.rule == "longest":
        found["image_sizes"] = [sides] * sequences
    return found


def tokens_of(setting: dict[str, Any]) -> list[int]:
    """Tokens of each image of a batch."""
    model, (count, width, height) = model_of(setting), setting["images"]
    assert model is not None
    return [model.towers[0].grid.tokens(width, height)] * (setting["rows"] * count)


def positions(patches: Any, max_width: int) -> Any:
    """pixtral/modeling_pixtral.py, position_ids_in_meshgrid@5.16.1, computed on the host: what goes to the GPU."""
    return torch.zeros(sum(one.shape[-1] * one.shape[-2] for one in patches), dtype=torch.long)


def no_padding(attention_mask: Any = None, **_options: Any) -> None:
    """masking_utils.py, flash_attention_mask@5.16.1, of rows that are full."""
    if attention_mask is not None:
        attention_mask.all()


def no_zero(attention_mask: Any = None, **_options: Any) -> None:
    """masking_utils.py, create_recurrent_attention_mask@5.16.1, likewise."""
    if attention_mask is not None:
        (attention_mask == 1).all()


@contextmanager
def seeing(setting: dict[str, Any]) -> Iterator[None]:
    """Inside, features take their places as on CUDA, and no value of a fake tensor is asked for."""
    with ExitStack() as stack:
        if setting["images"]:
            stack.enter_context(mock.patch.object(torch.Tensor, "masked_scatter", scattered))
            places = {(setting["rows"], setting["length"]): sum(tokens_of(setting))}
            take = partial(reordered, partial(taken, places))
            stack.enter_context(mock.patch.object(torch.Tensor, "__getitem__", lambda *given: take(*given)))
            stack.enter_context(mock.patch.object(torch.Tensor, "__setitem__", lambda *given: put_by_mask(put, *given)))
            stack.enter_context(mock.patch.object(functional, "conv2d", convolved))
            stack.enter_context(mock.patch.object(functional, "conv3d", convolved))
            stack.enter_context(mock.patch.object(functional, "layer_norm", layer_norm))
            stack.enter_context(mock.patch.object(functional, "unfold", unfold))
            stack.enter_context(
                mock.patch.dict(masking.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, {FLASH: no_padding})
            )
            tokens = tokens_of(setting)
            stack.enter_context(mock.patch.object(FakeTensor, "tolist", lambda _tensor: list(tokens), create=True))
            stack.enter_context(mock.patch.object(modeling_pixtral, "position_ids_in_meshgrid", positions))
            static = staticmethod(resized)
            stack.enter_context(
                mock.patch.object(modeling_siglip2.Siglip2VisionEmbeddings, "resize_positional_embeddings", static)
            )
            stack.enter_context(mock.patch.object(modeling_lfm2, "create_recurrent_attention_mask", no_zero))
            stack.enter_context(mock.patch.object(modeling_smolvlm.SmolVLMVisionEmbeddings, "forward", embedded))
            for module in CHECKED:
                stack.enter_context(mock.patch.object(module, "torch_compilable_check", lambda *_: None))
            if setting["config"]["model_type"] in MODELS:
                stack.enter_context(seen_by_grids(setting, tokens))
        yield
