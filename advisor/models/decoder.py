"""How a family's decoder is built, and how that and a config become an inventory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Literal, cast

from advisor.models.attention import softmax
from advisor.models.blocks import Block, LinearShape, WeightShape
from advisor.models.config import Config
from advisor.models.layer_variant import LLAMA, LayerVariant
from advisor.models.mlp import gated
from advisor.models.parts import Builder, Layer, Part, Tensors, linear, loose, merged, norm, within
from advisor.record import record

Plan = Callable[[Config], Sequence[Layer]]
FULL, SLIDING = "full_attention", "sliding_attention"
SANDWICH = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
"""Norms before and after attention and MLP, as Gemma has them since its second version."""


@record(eq=False)
class Text:
    """The decoder of a model: tensors outside of its blocks, its blocks, and which of them each layer is."""

    tensors: Tensors
    blocks: tuple[Block, ...]
    order: tuple[int, ...] = ()


def _no_tensors(_: Config) -> Tensors:
    """For families that have nothing but embedding, layers, final norm and head."""
    return ()


def plain_plan(c: Config, every: int | None = None) -> list[Layer]:
    """One layer kind after another, from ``layer_types`` where the config has it.

    A sliding window applies to the layers that ``layer_types`` names; without the list to every layer
    (``every`` None), or to all but each ``every``-th one.
    """
    window = c.maybe("sliding_window") if c.flag("use_sliding_window", True) else None
    types = c.strings("layer_types")
    if types is None:
        step = every and (c.maybe("sliding_window_pattern") or every)
        types = [SLIDING if step is None or (i + 1) % step else FULL for i in range(c.layers)]
    return [Layer(FULL, window=window if kind == SLIDING else None) for kind in fitted(types, c.layers)]


def fitted(kinds: Sequence[str], layers: int) -> Sequence[str]:
    """A list of layer kinds cut or repeated to ``layers``, for configs that were shortened by an override."""
    return kinds[:layers] if len(kinds) >= layers else [kinds[i % len(kinds)] for i in range(layers)] if kinds else ()


def full_plan(c: Config) -> list[Layer]:
    """Full attention in every layer, whatever the config says of windows."""
    return [Layer()] * c.layers


def every_layer_sparse(c: Config) -> list[Layer]:
    """Experts in every layer, with the window that the config names for all of them."""
    return [Layer(layer.mixer, "sparse", layer.window) for layer in plain_plan(c)]


@record(eq=False)
class Decoder:
    """Which parts a family's layers have, and what transformers calls them.

    ``mixers`` and ``mlps`` are keyed by ``Layer.mixer`` and ``Layer.mlp``; one builder stands for all keys.
    ``norms`` are the normalisations over the residual stream in each layer; ``weightless`` ones (OLMo) have
    no tensor.
    """

    mixers: Builder | Mapping[str, Builder] = field(default_factory=softmax)
    mlps: Builder | Mapping[str, Builder] = field(default_factory=gated)
    plan: Plan = full_plan
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    norm: Literal["rms", "layer"] = "rms"
    norm_bias: bool = False
    weightless: bool = False
    root: str = "model"
    embedding: str = "embed_tokens"
    stack: str = "layers"
    final_norm: str = "norm"
    head: str = "lm_head"
    head_bias: bool | str = False
    outside: Callable[[Config], Tensors] = _no_tensors
    layer_norms: Callable[[Config], tuple[str, ...]] | None = None
    loose: Callable[[Config, Layer], Tensors] | None = None
    embedding_width: str = "hidden_size"
    embedding_rows: int = 0
    """Rows of the embedding beyond the vocabulary (Llama 3.2 Vision's image tokens)."""
    variant: LayerVariant = LLAMA
    extra: tuple[str, ...] = ()
    """Facts that a reader of the ledger should know, one sentence each."""


def assemble(decoder: Decoder, c: Config, tied: bool, prefix: str = "", head_prefix: str = "") -> Text:
    """Count a decoder: its tensors with full names, and its blocks.

    ``prefix`` replaces the family's root where the decoder is part of a larger model
    (``model.language_model``).
    """
    root = prefix or decoder.root
    plan = decoder.plan(c)
    kinds: dict[Layer, int] = {}
    for layer in plan:
        kinds[layer] = kinds.get(layer, 0) + 1
    numbers = {layer: index for index, layer in enumerate(kinds)}
    built = [(_layer_parts(decoder, c, layer), count) for layer, count in kinds.items()]
    layers = [t for parts, count in built for t in within(f"{root}.{decoder.stack}.*", _tensors_of(parts), count)]
    blocks = tuple(block(decoder, c, parts, count, f"{root}.{decoder.stack}.*.") for parts, count in built)
    before, after = ends(decoder, c, tied, head_prefix)
    tensors = merged((*within(root, before), *layers, *within(root, decoder.outside(c)), *after))
    return Text(tensors, blocks, tuple(numbers[layer] for layer in plan))


def ends(decoder: Decoder, c: Config, tied: bool, head_prefix: str) -> tuple[Tensors, Tensors]:
    """What stands before and after the layers: embedding and final norm (without root), and the head."""
    width = c.size(decoder.embedding_width, c.hidden)
    vocabulary = c.size("vocab_size")
    before = loose(f"{decoder.embedding}.weight", (vocabulary + decoder.embedding_rows, width), "embedding")
    if decoder.final_norm and not decoder.weightless:
        before += norm(decoder.final_norm, c.hidden, decoder.norm_bias)
    after = linear(f"{head_prefix}{decoder.head}", width, vocabulary, "head", c.flag(decoder.head_bias))
    return before, after[1:] if tied else after


def _layer_parts(decoder: Decoder, c: Config, layer: Layer) -> list[Part]:
    """The parts of one layer: mixer, MLP, norms and what else the family has."""
    parts = [
        chosen(table, key)(c, layer) for table, key in ((decoder.mixers, layer.mixer), (decoder.mlps, layer.mlp)) if key
    ]
    names = decoder.layer_norms(c) if decoder.layer_norms else decoder.norms
    if not decoder.weightless:
        parts.append(Part(tuple(t for name in names for t in norm(name, c.hidden, decoder.norm_bias))))
    if decoder.loose:
        parts.append(Part(decoder.loose(c, layer)))
    return parts


def chosen(table: Builder | Mapping[str, Builder], key: str) -> Builder:
    """The builder for a key of ``Layer``."""
    return cast("Mapping[str, Builder]", table)[key] if isinstance(table, Mapping) else table


def _tensors_of(parts: Sequence[Part]) -> list[WeightShape]:
    """All tensors of a layer's parts."""
    return [tensor for part in parts for tensor in part.tensors]


def block(decoder: Decoder, c: Config, parts: Sequence[Part], count: int, path: str) -> Block:
    """What activations need to know of one kind of layer."""
    tensors = _tensors_of(parts)
    names = decoder.layer_norms(c) if decoder.layer_norms else decoder.norms
    return Block(
        count=count,
        hidden=c.hidden,
        attention=next((part.attention for part in parts if part.attention), None),
        mlp=next((part.mlp for part in parts if part.mlp), None),
        linears=tuple(as_linear(tensor, path) for tensor in tensors if tensor.linear),
        parameters=sum(tensor.elements for tensor in tensors),
        norms=len(names),
        norm=decoder.norm,
        states=next((part.states for part in parts if part.states), None),
    )


def as_linear(tensor: WeightShape, path: str = "") -> LinearShape:
    """The weight of a linear layer as a linear layer of its block; ``path`` comes before the module's name."""
    name = tensor.module.rsplit(".", 1)[-1]
    return LinearShape(name, tensor.shape[1], tensor.shape[0], tensor.kind, path + tensor.module)
