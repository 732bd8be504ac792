# pyright: basic, reportMissingImports=false
"""Images that towers see by a grid of patches each: what their models ask the values of tensors for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import torch
import transformers.vision_utils as vision_utils
from torch._subclasses.fake_tensor import FakeTensor
from transformers.models.glm4v import modeling_glm4v
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl
from transformers.models.qwen2_vl import modeling_qwen2_vl
from transformers.models.qwen3_5 import modeling_qwen3_5

from .emulating import model_of

MODELS = {
    "qwen2_vl": modeling_qwen2_vl.Qwen2VLModel,
    "qwen2_5_vl": modeling_qwen2_5_vl.Qwen2_5_VLModel,
    "glm4v": modeling_glm4v.Glm4vModel,
    "qwen3_5": modeling_qwen3_5.Qwen3_5Model,
}
MODULES = (vision_utils, modeling_qwen2_vl, modeling_qwen2_5_vl, modeling_glm4v, modeling_qwen3_5)


class Number(int):
    """A number on the GPU."""

    def item(self) -> int:
        """Its value."""
        return int(self)


class OnHost:
    """Indices that lie on the host, and go to the GPU for each use."""

    def __init__(self, count: int) -> None:
        self.count = count

    def sent(self) -> Any:
        """A copy on the GPU."""
        return torch.empty(self.count, dtype=torch.long)


class Reordered(torch.autograd.Function):
    """aten/src/ATen/native/TensorAdvancedIndexing.cpp, make_info; cuda/Indexing.cu, index_put_with_sort_kernel@2.13.0."""

    @staticmethod
    def forward(context: Any, values: Any, index: OnHost) -> Any:
        places = index.sent()
        result = torch.empty_like(values)
        del places
        context.index = index
        return result

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        result = torch.empty_like(gradient)
        places = [context.index.sent() for _ in range(3)]
        del places
        return result, None


def reordered(take: Any, values: Any, index: Any) -> Any:
    """``Tensor[...]``, by indices on the host too."""
    if isinstance(index, tuple) and isinstance(index[0], OnHost):
        return Reordered.apply(values, index[0])
    return take(values, index)


def sides(setting: dict[str, Any]) -> tuple[int, int]:
    """Patches along the edges of an image: height and width."""
    model, (_, width, height) = model_of(setting), setting["images"]
    assert model is not None
    grid = model.towers[0].grid
    return grid.near(height), grid.near(width)


def kinds_of(setting: dict[str, Any]) -> list[int]:
    """A row: as many words before each image as after the last."""
    model, (count, width, height) = model_of(setting), setting["images"]
    assert model is not None
    tokens = model.towers[0].grid.tokens(width, height)
    words = (setting["length"] - count * tokens) // (count + 1)
    row = ([0] * words + [1] * tokens) * count
    return row + [0] * (setting["length"] - len(row))


def listed(setting: dict[str, Any], tokens: list[int], tensor: Any) -> list[Any]:
    """``Tensor.tolist``: of grids, of kinds of tokens, of how many patches become one, or of tokens of images."""
    if tensor.ndim == 2:
        return [[1, *sides(setting)] for _ in range(tensor.shape[0])]
    if tensor.shape[0] == setting["length"]:
        return kinds_of(setting)
    return [2] * len(tokens) if tensor._is_view() else list(tokens)


def lengths(count: int, *_args: Any, **_options: Any) -> Any:
    """vision_utils.py, get_vision_cu_seqlens@5.16.1: where images end."""
    return torch.zeros(count + 1, dtype=torch.int32)


def windows(setting: dict[str, Any], count: int, *_args: Any, **_options: Any) -> tuple[OnHost, Any]:
    """vision_utils.py, get_vision_window_index@5.16.1: the order on the host, and where windows end."""
    window = setting["config"]["vision_config"].get("window_size", 112) // 28
    height, width = (side // 2 for side in sides(setting))
    found = count * -(-height // window) * -(-width // window)
    return OnHost(count * height * width), torch.zeros(found + 1, dtype=torch.int32)


def put_by_mask(put: Any, base: Any, index: Any, values: Any) -> None:
    """``Tensor[...] = ...``, by a mask in the last dimension too, all of which is set: Nonzero.cu@2.13.0."""
    if isinstance(index, tuple) and isinstance(index[-1], torch.Tensor):
        places = torch.empty(index[-1].numel(), index[-1].dim(), dtype=torch.long)
        del places
        return
    put(base, index, values)


def by_numbers(indexed: Any, model: Any, *args: Any, image_grid_thw: Any = None, **options: Any) -> Any:
    """``get_rope_index`` with the sides of images as numbers; it makes a tensor of as many numbers as rows."""
    given = [[Number(one) for one in row] for row in image_grid_thw.tolist()]
    with mock.patch.object(torch, "tensor", lambda rows, **_: torch.zeros(len(rows), dtype=torch.long)):
        return indexed(model, *args, image_grid_thw=given, **options)


def grids_of(setting: dict[str, Any], count: int) -> dict[str, Any]:
    """What the processor returns besides pixels."""
    return {"image_grid_thw": torch.zeros(count, 3, dtype=torch.long)}


@contextmanager
def seen_by_grids(setting: dict[str, Any], tokens: list[int]) -> Iterator[None]:
    """Inside, the values of grids are known."""
    kind, count = setting["config"]["model_type"], len(tokens)
    with ExitStack() as stack:
        read = lambda tensor: listed(setting, tokens, tensor)  # noqa: E731
        stack.enter_context(mock.patch.object(FakeTensor, "tolist", read, create=True))
        stack.enter_context(mock.patch.object(vision_utils, "get_vision_cu_seqlens", partial(lengths, count)))
        stack.enter_context(
            mock.patch.object(modeling_qwen2_5_vl, "get_vision_window_index", partial(windows, setting, count))
        )
        stack.enter_context(mock.patch.object(torch, "argsort", lambda index: index))
        for module in MODULES:
            stack.enter_context(mock.patch.object(module, "get_max_seqlen", lambda *_args, **_options: 1))
        model = MODELS[kind]
        indexed = model.get_rope_index
        stack.enter_context(
            mock.patch.object(model, "get_rope_index", lambda *args, **options: by_numbers(indexed, *args, **options))
        )
        yield
