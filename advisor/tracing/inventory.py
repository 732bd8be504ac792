# pyright: basic, reportMissingImports=false
"""The tensors of a real model: name, shape, count, and what each is for."""

import re
from collections.abc import Iterator
from typing import Any

import torch

from advisor.models.blocks import Kind, WeightShape
from advisor.models.parts import merged

TOWERS: tuple[tuple[str, Kind], ...] = (
    (r"projector|embed_vision|embed_audio|connector", "projector"),
    (r"vision|visual|image", "vision"),
    (r"audio|speech", "audio"),
)
OWNERS: tuple[tuple[str, Kind], ...] = (
    (r"Mamba|SSM|Conv|Delta|Recurrent|Rwkv|LSTM|Linear\w*Attention|Lightning", "mixer"),
    (r"Attention|MoA", "attention"),
    (r"MLP|Mlp|FeedForward|FFN|MoE|Moe|Expert|Ffn", "mlp"),
)
ROUTERS = {"gate", "router", "wg", "gate_network", "e_score_correction_bias"}


def starred(name: str) -> str:
    """A name with ``*`` for every number in it."""
    return re.sub(r"\.\d+(?=\.|$)", ".*", name)


def is_linear(module: Any) -> bool:
    """Whether LoRA and bitsandbytes see a linear layer."""
    return isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"


def tensors(model: Any) -> tuple[WeightShape, ...]:
    """All parameters, shared ones once, in the order of the modules."""
    return merged(each_tensor(model, ""))


def each_tensor(root: Any, prefix: str, seen: set[int] | None = None) -> Iterator[WeightShape]:
    """The parameters below ``root`` one by one; those in ``seen`` are left out, and new ones are added to it."""
    seen = set() if seen is None else seen
    ends = () if prefix else ends_of(root)
    owners: dict[str, Kind] = {}
    for path, module in root.named_modules():
        owners[path] = owner(module, owners.get(path.rpartition(".")[0], "other"))
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            full = ".".join(part for part in (prefix, path, name) if part)
            shape = tuple(reversed(parameter.shape)) if type(module).__name__ == "Conv1D" else tuple(parameter.shape)
            kind = _ends_kind(module, ends) or kind_of(full, module, owners[path], len(shape))
            yield WeightShape(starred(full), kind, shape, 1, name == "weight" and is_linear(module))


def ends_of(model: Any) -> tuple[tuple[Any, Kind], ...]:
    """The modules that turn tokens to vectors and back."""
    return (model.get_input_embeddings(), "embedding"), (model.get_output_embeddings(), "head")


def _ends_kind(module: Any, ends: tuple[tuple[Any, Kind], ...]) -> Kind | None:
    """The kind of a module that is one of the ends."""
    return next((kind for one, kind in ends if one is module), None)


def owner(module: Any, outer: Kind) -> Kind:
    """What the class of a module says of what lies in it; else what the module around it says."""
    name = type(module).__name__
    if isinstance(module, torch.nn.Linear | torch.nn.ModuleList | torch.nn.Conv1d) or "Layer" in name:
        return outer
    return first(OWNERS, name) or outer


def first(table: tuple[tuple[str, Kind], ...], name: str) -> Kind | None:
    """The kind of the first pattern that is found in a name."""
    for pattern, kind in table:
        if re.search(pattern, name):
            return kind
    return None


def kind_of(full: str, module: Any, owned: Kind, dimensions: int) -> Kind:
    """The kind of a parameter, by tower, by the class of its module, by its place."""
    tower = first(TOWERS, full)
    if tower is not None:
        return tower
    parts = full.split(".")
    if isinstance(module, torch.nn.Embedding):
        return "embedding"
    if "Norm" in type(module).__name__:
        return "norm"
    if owned != "attention" and (ROUTERS & {parts[-2], parts[-1]} or "Router" in type(module).__name__):
        return "router"
    if "experts" in parts or (dimensions == 3 and owned == "mlp"):
        return "experts"
    return owned
