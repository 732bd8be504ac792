"""The pieces that layers are made of: linears, norms and loose parameters, named within the layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from advisor.models.blocks import Attention, Kind, Mlp, StateSpace, WeightShape
from advisor.models.config import Config
from advisor.record import record

Tensors = tuple[WeightShape, ...]


@record
class Layer:
    """What sets one decoder layer apart from another: its mixer, its MLP, and how far attention looks."""

    mixer: str = "full_attention"
    mlp: str = "dense"
    window: int | None = None


@record
class Part:
    """A piece of one layer: its tensors, named within the layer, and what the activation formulas need."""

    tensors: Tensors
    attention: Attention | None = None
    mlp: Mlp | None = None
    states: StateSpace | None = None


Builder = Callable[[Config, Layer], Part]


def linear(name: str, n_in: int, n_out: int, kind: Kind, bias: bool = False) -> Tensors:
    """An ``nn.Linear``: (out, in) weight, and a bias if it has one."""
    weight = WeightShape(f"{name}.weight", kind, (n_out, n_in), linear=True)
    return (weight, WeightShape(f"{name}.bias", kind, (n_out,))) if bias else (weight,)


def norm(name: str, width: int, bias: bool = False, kind: Kind = "norm") -> Tensors:
    """A normalisation's weight, and its bias if it has one."""
    weight = WeightShape(f"{name}.weight", kind, (width,))
    return (weight, WeightShape(f"{name}.bias", kind, (width,))) if bias else (weight,)


def conv(name: str, shape: tuple[int, ...], kind: Kind, bias: bool = False) -> Tensors:
    """A convolution: (out, in / groups, *kernel) weight, and a bias of ``out`` if it has one."""
    weight = WeightShape(f"{name}.weight", kind, shape)
    return (weight, WeightShape(f"{name}.bias", kind, (shape[0],))) if bias else (weight,)


def loose(name: str, shape: tuple[int, ...], kind: Kind) -> Tensors:
    """A parameter that is no module's weight."""
    return (WeightShape(name, kind, shape),)


def within(prefix: str, tensors: Iterable[WeightShape], count: int = 1) -> Tensors:
    """The same tensors under a prefix, ``count`` times as often."""
    return tuple(WeightShape(f"{prefix}.{t.name}", t.kind, t.shape, t.count * count, t.linear) for t in tensors)


def of_kind(kind: Kind, tensors: Iterable[WeightShape]) -> Tensors:
    """The same tensors, all counted to one tower."""
    return tuple(WeightShape(t.name, kind, t.shape, t.count, t.linear) for t in tensors)


def merged(tensors: Iterable[WeightShape]) -> Tensors:
    """Tensors of one name and shape joined into one entry with their summed count, in order of appearance."""
    counts: dict[tuple[str, tuple[int, ...]], int] = {}
    first: dict[tuple[str, tuple[int, ...]], WeightShape] = {}
    for tensor in tensors:
        key = tensor.name, tensor.shape
        counts[key] = counts.get(key, 0) + tensor.count
        first.setdefault(key, tensor)
    return tuple(
        WeightShape(t.name, t.kind, t.shape, counts[key], t.linear) if counts[key] != t.count else t
        for key, t in first.items()
    )
