"""Towers of images and sound that only lie in memory, for the rows are of text alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.models.architecture import Linear as Shape

if TYPE_CHECKING:
    from advisor.memory.reserved.linears import Linear
    from advisor.memory.reserved.loading import Loader
    from advisor.models import Tensor

BESIDE = frozenset({"vision", "audio", "projector"})


def beside(tensor: Tensor) -> bool:
    """Whether a tensor belongs to a tower, or to what joins it to the decoder."""
    return tensor.kind in BESIDE


def towers(loader: Loader) -> tuple[Linear, ...]:
    """Loads their weights; their linears are returned, which may get adapters that nothing trains."""
    found: list[Linear] = []
    for tensor in filter(beside, loader.model.tensors):
        for loader.index in range(tensor.count):
            if not tensor.linear or not tensor.name.endswith("weight"):
                loader.plain(tensor.numel, tensor.module)
            else:
                shape = Shape(
                    tensor.module.rpartition(".")[2], tensor.shape[-1], tensor.shape[-2], tensor.kind, tensor.module
                )
                found.append(loader.linear(shape, bias=False))
    loader.index = -1
    for weight in loader.weights:
        weight.trained = False
    return tuple(found)
