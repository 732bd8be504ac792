"""A model with those of its layers apart that keep other than the rest: by their adapters, or by what they get."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from advisor.memory.activations.dtypes import enters_narrow
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.lora_targets import layers_named, wraps
from advisor.memory.weights import storage
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models.architecture import Architecture
    from advisor.models.blocks import Block, LinearShape
    from advisor.run import Lora, Run

Kinds = Iterable[tuple["Block", list[int]]]
"""Layers of one block told apart: each kind, and which of the block's layers they are."""


def with_layers_apart(run: Run, model: Architecture) -> Architecture:
    """The model with layers of their own blocks where adapters, or the precision of their input, tell them apart."""
    lora = run.lora
    if lora is not None and layers_named(lora):
        model = split(model, lambda block, _: _by_adapters(lora, block))
    first = _narrow_layers(run, model)
    return split(model, lambda block, numbers: _by_input(block, [n < first for n in numbers])) if first else model


def split(model: Architecture, kinds: Callable[[Block, list[int]], Kinds]) -> Architecture:
    """The model with each block's layers told apart; ``kinds`` gets a block and the numbers of its layers."""
    blocks: list[Block] = []
    order = [0] * model.layers
    for block in model.blocks:
        numbers = [number for number, one in enumerate(model.in_order) if one is block]
        for kind, which in kinds(block, numbers):
            for index in which:
                order[numbers[index]] = len(blocks)
            blocks.append(kind)
    return replace(model, blocks=tuple(blocks), order=tuple(order))


def _by_adapters(lora: Lora, block: Block) -> Kinds:
    """The layers of a block by which of their linears LoRA wraps, each kind as its first layer has it."""
    found: dict[tuple[bool, ...], list[int]] = {}
    for index in range(block.count):
        wrapped = tuple(wraps(lora, x.path.replace("*", str(index))) for x in block.linears)
        found.setdefault(wrapped, []).append(index)
    for kind in found.values():
        yield replace(block, count=len(kind), linears=at(block, kind[0])), kind


def at(block: Block, index: int) -> tuple[LinearShape, ...]:
    """The linears of one layer, by their own names."""
    return tuple(replace(x, module=x.module.replace("*", str(index))) for x in block.linears)


def _by_input(block: Block, narrow: list[bool]) -> Kinds:
    """The layers of a block by whether their input is in half precision."""
    for is_narrow in (True, False):
        if which := [index for index, one in enumerate(narrow) if one is is_narrow]:
            yield replace(block, count=len(which), narrow=is_narrow), which


def _narrow_layers(run: Run, model: Architecture) -> int:
    """How many layers get half precision until one widens the stream: that with the first norm in fp32, or MLP."""
    layers = model.in_order
    norm = family_and_norm(run, layers[0])[1]
    if layers[0].traces or not enters_narrow(run, norm) or _embeds_wide(run, model):
        return 0
    return 1 if norm == "layer" else 1 + next((i for i, block in enumerate(layers) if block.mlp is not None), 0)


def _embeds_wide(run: Run, model: Architecture) -> bool:
    """Whether the table of words is in fp32, and so what is taken out of it."""
    tables = [tensor for tensor in model.tensors if tensor.kind == "embedding"]
    return any(storage(run, model, table, is_trained=False)[1] == 4 for table in tables)
