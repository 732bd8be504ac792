"""What is kept between the layers of a tower and those of the decoder, and before the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations import own_input_bytes
from advisor.memory.activations.dtypes import KEEP_WIDTH, numbers
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.ledger import Term

if TYPE_CHECKING:
    from advisor.models import Architecture
    from advisor.models.tower import Tower
    from advisor.run import Run

TRACED = "autograd's saved tensors, traced from the transformers modules of the tower"
INT8 = "bitsandbytes/autograd/_functions.py, MatMul8bitLt@0.50.2: ctx.tensors is no saved tensor"
LEAF = "axolotl/loaders/adapter.py:427-428@0.19.0: what an embedding returns is a leaf, which autograd keeps"


def entering_terms(inner: Run, tower: Tower, *, rebuilt: bool) -> Iterator[Term]:
    """Of a tower that gradients go through: what a norm in front of its layers reads, and the leaf of adapters.

    Not the leaf where a layer's norm keeps that as it is.
    """
    width, patches = (4 if inner.autocast or tower.block.norm == "rms" else inner.compute_bytes), inner.tokens
    width *= tower.first * tower.block.hidden
    text = f"{width:,} B x {patches:,} patches"
    yield Term(f"{tower.name}'s first norm", "activations", width * patches, text, TRACED)
    if inner.adapter is None or not (tower.hooked and tower.entry):
        return
    each = 4 if tower.placed and inner.upcasts_unquantized else inner.compute_bytes
    width, patches = each * tower.block.hidden, inner.tokens
    if not (tower.bare and not rebuilt and own_input_bytes(inner, tower.block) == width * patches):
        text = f"{width:,} B x {patches:,} patches"
        yield Term(f"{tower.name}'s embedding", "activations", width * patches, text, LEAF)


def joining_terms(inner: Run, tower: Tower, tokens: int) -> Iterator[Term]:
    """Of a tower that gradients go through: norms after its layers, its projector."""
    name, exact = tower.name, 4 if inner.autocast else inner.compute_bytes
    hidden, patches = tower.block.hidden, inner.tokens
    width = exact * hidden * (tower.norms + tower.pools)
    yield Term(f"{name}'s last norms", "activations", width * patches, f"{width:,} B x {patches:,} patches", TRACED)
    width = _output_width(inner, tower) * sum(one.n_out for one in tower.joins[:-1])
    width += _inputs_width(inner, tower) * sum(one.n_in for one in tower.joins)
    yield Term(f"{name}'s projector", "activations", width * tokens, f"{width:,} B x {tokens:,} tokens", TRACED)


def _output_width(inner: Run, tower: Tower) -> int:
    """Bytes per element that linears of the projector return: quantized ones, what they get."""
    _, norm = family_and_norm(inner, tower.block)
    wide = tower.norms > 0 or numbers(inner, norm).stream > inner.compute_bytes
    exact = inner.quantization in KEEP_WIDTH and inner.autocast and wide
    return 4 if exact else inner.compute_bytes


def _inputs_width(inner: Run, tower: Tower) -> int:
    """Bytes per element of the inputs of the projector's linears that are kept: for trained and for 8-bit weights."""
    if inner.quantization == "int8":
        return _output_width(inner, tower)
    return inner.compute_bytes if inner.adapter is None else 0


def words_term(run: Run, model: Architecture) -> Term:
    """The embeddings of the words, of which a copy with the features in it is what the first layer reads."""
    leaf = run.lora is not None and not run.lora.modules_to_save
    width = run.compute_bytes * model.hidden_size * leaf
    return Term("words' embeddings", "activations", width * run.tokens, f"{width:,} B x {run.tokens:,} tokens", LEAF)
