# pyright: basic, reportMissingImports=false
"""The decoder layers of a real model: which are equal, and what one of each kind is made of."""

import re
from typing import Any

import torch

from advisor.models.blocks import Attention, Block, Mlp, WeightShape
from advisor.models.config import ALIASES
from advisor.models.decoder import as_linear
from advisor.record import record
from advisor.tracing.inventory import each_tensor
from advisor.util import regex

LINEAR_MIXER = r"Delta|Recurrent|Rwkv|LSTM|Linear\w*Attention|Lightning"
NUMBERING = regex(r"idx|index|layer_id|layer_num")


@record
class Group:
    """Equal layers: the one that is traced, and all of them."""

    first: int
    members: tuple[int, ...]


def groups(layers: Any, config: Any) -> list[Group]:
    """Layers sorted by what they are made of, in order of appearance."""
    found: dict[str, list[int]] = {}
    types = getattr(config, "layer_types", None) or []
    for index, layer in enumerate(layers):
        kind = types[index] if index < len(types) else ""
        found.setdefault(f"{kind} {layer!r} {settings(layer)}", []).append(index)
    return [Group(members[0], tuple(members)) for members in found.values()]


def settings(layer: Any) -> list[tuple[str, str, object]]:
    """Whole numbers, words and switches that the modules of a layer hold, but for its place in the model."""
    return [
        (path, name, value)
        for path, module in layer.named_modules()
        for name, value in sorted(vars(module).items())
        if isinstance(value, int | str | None) and not name.startswith("_") and not NUMBERING.search(name)
    ]


def read(config: Any, key: str, otherwise: int = 0) -> int:
    """A number of the config, by any name that configs give it."""
    for name in (key, *ALIASES.get(key, ())):
        value = _plainly(config, name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return otherwise


def _plainly(config: Any, name: str) -> Any:
    """A value of the config; None where it is another in each layer (configuration_utils.py@5.16.1)."""
    try:
        return getattr(config, name, None)
    except Exception:  # its class is no AttributeError's
        return None


def _of_layer(config: Any, index: int) -> Any:
    """The config as one layer sees it, where transformers tells layers apart."""
    each = _plainly(config, "per_layer_config")
    return each[index] if each else config


def block(layers: Any, group: Group, config: Any) -> Block:
    """What activations need to know of one kind of layer."""
    layer, config = layers[group.first], _of_layer(config, group.first)
    hidden = read(config, "hidden_size")
    inside = tuple(dict.fromkeys(each_tensor(layer, "layer")))
    seen: set[int] = set()
    elements = sum(t.elements for index in group.members for t in each_tensor(layers[index], "layer", seen))
    norms = [t for t in inside if t.kind == "norm" and t.shape == (hidden,) and t.name.endswith("weight")]
    return Block(
        count=len(group.members),
        hidden=hidden,
        attention=attention(layer, config, inside),
        mlp=mlp(config, inside, hidden),
        linears=tuple(as_linear(tensor) for tensor in inside if tensor.linear),
        parameters=elements // len(group.members),
        norms=len(norms),
        norm="layer" if any(isinstance(one, torch.nn.LayerNorm) for one in layer.modules()) else "rms",
    )


def attention(layer: Any, config: Any, inside: tuple[WeightShape, ...]) -> Attention | None:
    """The token mixer, by the classes of its modules and the config's heads."""
    names = " ".join(type(module).__name__ for module in layer.modules())
    heads = read(config, "num_attention_heads", 1)
    shared = read(config, "num_key_value_heads", heads)
    width = head_width(layer, config, heads)
    if re.search(r"Mamba|SSM", names):
        return other("ssm", heads, width)
    if re.search(LINEAR_MIXER, names):
        return other("linear", heads, width)
    if not any(t.kind == "attention" for t in inside):
        return other("conv", heads, width) if "Conv" in names else None
    if read(config, "kv_lora_rank"):
        key = read(config, "qk_nope_head_dim") + read(config, "qk_rope_head_dim")
        value = read(config, "v_head_dim", key)
        return Attention("latent", heads, heads, key, heads * key, heads * key, heads * value)
    normed = any(t.kind == "norm" and re.search(r"\.(q|k|query|key)_", t.name) for t in inside)
    return Attention(
        "softmax", heads, shared, width, heads * width, shared * width, shared * width, window(layer), normed
    )


def other(kind: Any, heads: int, width: int) -> Attention:
    """A mixer without softmax."""
    return Attention(kind, heads, heads, width, heads * width, heads * width, heads * width)


def head_width(layer: Any, config: Any, heads: int) -> int:
    """Width of a head: what the modules say, else the config, else hidden / heads."""
    said = (getattr(module, "head_dim", None) for module in layer.modules())
    return next((one for one in said if isinstance(one, int)), read(config, "head_dim")) or (
        read(config, "hidden_size") // heads
    )


def window(layer: Any) -> int | None:
    """The sliding window that the modules of a layer hold."""
    said = (getattr(module, "sliding_window", None) for module in layer.modules())
    return next((one for one in said if isinstance(one, int)), None)


def mlp(config: Any, inside: tuple[WeightShape, ...], hidden: int) -> Mlp | None:
    """The feed-forward part, by the shapes of its weights."""
    experts = [t for t in inside if t.kind == "experts" and len(t.shape) > 1]
    dense = [t for t in inside if t.kind == "mlp" and t.linear]
    width, gated = shape(dense, hidden)
    if not experts:
        return Mlp(width, gated) if width else None
    routed, gated = shape(experts, hidden)
    stacked = next((t.shape[0] for t in experts if len(t.shape) == 3), 0)
    return Mlp(
        routed,
        gated,
        stacked or read(config, "num_experts"),
        read(config, "num_experts_per_tok", 1),
        shared_width=width,
    )


def shape(weights: list[WeightShape], hidden: int) -> tuple[int, bool]:
    """Width between the two matrix products, and whether a gate doubles the first."""
    sides = [next((size for size in t.shape[-2:] if size != hidden), hidden) for t in weights if hidden in t.shape[-2:]]
    width = min(sides, default=0)
    return width, len(sides) > 2 or max(sides, default=0) == 2 * width
