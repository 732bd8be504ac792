"""Towers of images and sound: those that only lie in memory, for the rows are of text alone, and those that compute."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from advisor.models.blocks import LinearShape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from advisor.allocations.autograd.autograd import Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.layers.loading import Loader
    from advisor.models import WeightShape

OUTSIDE_DECODER = frozenset({"vision", "audio", "projector"})


def is_outside_decoder(tensor: WeightShape) -> bool:
    """Whether a tensor belongs to a tower, or to what joins it to the decoder."""
    return tensor.kind in OUTSIDE_DECODER


class Towers:
    """The weights of towers by name, those of a layer with its number; linears may get adapters."""

    def __init__(self, loader: Loader) -> None:
        self.linears: dict[str, Linear] = {}
        self.weights: dict[str, Tensor] = {}
        tensors = [tensor for tensor in loader.model.tensors if is_outside_decoder(tensor)]
        biased = {tensor.module for tensor in tensors if tensor.name.endswith(".bias")}
        for _, group in groupby(tensors, key=lambda tensor: tensor.name.partition(".*.")[0]):
            self.load(loader, list(group), biased)
        loader.index = -1
        for weight in loader.weights:
            weight.trained = False

    def load(self, loader: Loader, tensors: Iterable[WeightShape], biased: set[str]) -> None:
        """The weights of all layers of one kind, or those around them."""
        tensors = list(tensors)
        for loader.index in range(max(tensor.count for tensor in tensors)):
            for tensor in tensors:
                self.add(loader, tensor, biased)

    def add(self, loader: Loader, tensor: WeightShape, biased: set[str]) -> None:
        """One weight; the bias of a linear comes with it."""
        name = tensor.name.replace("*", str(loader.index))
        if tensor.linear and name.endswith(".weight"):
            path = tensor.module
            shape = LinearShape(path.rpartition(".")[2], tensor.shape[-1], tensor.shape[-2], tensor.kind, path)
            self.linears[self.free(name.removesuffix(".weight"))] = loader.linear(shape, bias=path in biased)
        elif not (name.endswith(".bias") and name.removesuffix(".bias") in self.linears):
            self.weights[name] = loader.plain(tensor.numel, tensor.module)

    def free(self, name: str) -> str:
        """The name of a linear; the second of a sequence comes after an activation, which is counted, too."""
        return f"{name.removesuffix('0')}2" if name in self.linears else name
