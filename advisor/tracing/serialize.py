"""A traced architecture and its facts as JSON, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from advisor.models.architecture import Architecture
from advisor.models.blocks import Attention, Block, LinearShape, Mlp, WeightShape
from advisor.models.traced import AdapterFacts, Facts, Growth, LayerTrace, ModelTrace

Json = Mapping[str, Any]


def encoded(model: Architecture) -> dict[str, Any]:
    """An architecture as plain values."""
    return asdict(model)


def decoded(value: Json) -> Architecture:
    """An architecture from plain values. Raises ``KeyError``, ``TypeError`` or ``ValueError`` where they are none.

    Towers are not traced.
    """
    return Architecture(
        **_with_parts(
            value,
            tensors=tuple(WeightShape(**_with_parts(one, shape=tuple(one["shape"]))) for one in value["tensors"]),
            blocks=tuple(map(block, value["blocks"])),
            extra=tuple(value["extra"]),
            order=tuple(value.get("order", ())),
            towers=(),
            trace=trace(value["trace"]),
        )
    )


def _with_parts(value: Json, **parts: Any) -> dict[str, Any]:
    """Plain values with some of them decoded."""
    return {**value, **parts}


def block(value: Json) -> Block:
    """A kind of layer."""
    return Block(
        **_with_parts(
            value,
            attention=value["attention"] and Attention(**value["attention"]),
            mlp=value["mlp"] and Mlp(**value["mlp"]),
            linears=tuple(LinearShape(**one) for one in value["linears"]),
            traces=tuple(map(layer, value["traces"])),
        )
    )


def layer(value: Json) -> LayerTrace:
    """What was measured of a layer."""
    growths = {name: growth(value[name]) for name in ("saved", "working", "forward", "entered")}
    return LayerTrace(facts(value["facts"]), **growths)


def growth(value: Json) -> Growth:
    """Bytes at three lengths, which differ."""
    points = tuple((int(length), int(bytes_)) for length, bytes_ in value["points"])
    if len({length for length, _ in points}) != 3:
        raise ValueError("not three lengths")
    return Growth(points)


def trace(value: Json) -> ModelTrace:
    """What was measured outside of layers."""
    outside = tuple((facts(one), growth(each)) for one, each in value["outside"])
    return ModelTrace(str(value["version"]), tuple(value["windows"]), outside)


def facts(value: Json) -> Facts:
    """The facts of a trace."""
    return Facts(**_with_parts(value, adapter=value["adapter"] and adapter(value["adapter"])))


def adapter(value: Json) -> AdapterFacts:
    """The adapter of a trace."""
    pattern = tuple((str(name), int(rank)) for name, rank in value["rank_pattern"])
    named = {name: tuple(value[name]) for name in ("targets", "parameters")}
    return AdapterFacts(**_with_parts(value, rank_pattern=pattern, **named))
