"""What the parts of multimodal models were called before transformers put them into one ``model``."""

from __future__ import annotations

from advisor.models.architecture import Architecture
from advisor.models.blocks import Block
from advisor.record import replace

FORMER = (("model.language_model.", "language_model.model."), ("lm_head.", "language_model.lm_head."), ("model.", ""))
"""Starts of names and what stood in their place: models/voxtral/modeling_voxtral.py:369-378@5.9.0 and @5.10.1."""


def former(name: str) -> str:
    """A parameter's or a module's former name."""
    new, old = next(((new, old) for new, old in FORMER if f"{name}.".startswith(new)), ("", ""))
    return old + name.removeprefix(new)


def with_former_names(model: Architecture) -> Architecture:
    """The model by its parts' former names."""
    tensors = tuple(replace(tensor, name=former(tensor.name)) for tensor in model.tensors)
    towers = tuple(replace(tower, block=renamed(tower.block)) for tower in model.towers)
    return replace(model, tensors=tensors, blocks=tuple(map(renamed, model.blocks)), towers=towers)


def renamed(block: Block) -> Block:
    """A block with its linears by their former names."""
    return replace(block, linears=tuple(replace(one, module=former(one.module)) for one in block.linears))
