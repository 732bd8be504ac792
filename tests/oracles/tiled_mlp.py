# pyright: basic
"""Tiled MLPs around those of a model, by axolotl's and DeepSpeed's own functions, as axolotl's closure calls them."""

from collections.abc import Callable
from types import MethodType
from typing import Any

import pytest

pytest.importorskip("axolotl")

from .axolotl_kernels import loaded_alone

TiledMLP: Any = loaded_alone("axolotl.monkeypatch.tiled_mlp", "base").TiledMLP


def tiled(shards: int, function: Any = TiledMLP) -> Callable[[Any], None]:
    """What puts tiles around each MLP of a model: axolotl/monkeypatch/tiled_mlp/patch.py:56-120@0.19.0."""

    def prepare(model: Any) -> None:
        for module in model.modules():
            if type(module).__name__.endswith("MLP"):
                module.forward = MethodType(_pieces(module, shards, function), module)

    return prepare


def _pieces(module: Any, shards: int, function: Any) -> Callable[[Any, Any], Any]:
    """The forward of one MLP."""
    forward, weights = type(module).forward, [one for one in module.parameters() if one.requires_grad]
    return lambda self, x: function.apply(forward, self, x, shards, weights)
