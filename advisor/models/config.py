"""A model's config.json, read as its transformers config class would: with aliases and class defaults."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

from advisor.errors import InputError

ALIASES: dict[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "d_model", "model_dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_kv_heads", "multi_query_group_num"),
    "intermediate_size": ("n_inner", "ffn_hidden_size", "ffn_dim"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length", "model_max_length"),
    "num_experts_per_tok": (
        "num_experts_per_token",
        "moe_top_k",
        "moe_k",
        "moe_topk",
        "top_k_experts",
        "experts_per_token",
    ),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "layer_types": ("layers_block_type",),
    "sliding_window_pattern": ("_sliding_window_pattern", "global_attn_every_n_layers"),
    "dtype": ("torch_dtype",),
}

MOST = 2**100
"""Above the 1e30 that some configs write for "no limit"; a product of several still fits into a float."""


class Config:
    """Typed reading of config keys.

    A key that the file gives wins, even when it says null; else an alias of it, else the default of the
    config class (``defaults.json``, from transformers' config classes). A missing or wrongly typed key raises
    ``InputError``.
    """

    def __init__(self, values: Mapping[str, object], model_type: str, name: str) -> None:
        self.values = values
        self.model_type = model_type
        self.name = name
        self._defaults = class_defaults().get(model_type, {})

    def get(self, key: str) -> object:
        """The value of a key, its aliases or its class default; None where there is none."""
        names = (key, *ALIASES.get(key, ()))
        for place in (self.values, self._defaults):
            for name in names:
                if name in place:
                    return place[name]
        return None

    def given(self, key: str) -> object:
        """What the file itself says, class defaults left out."""
        return next((self.values[name] for name in (key, *ALIASES.get(key, ())) if name in self.values), None)

    def maybe(self, key: str) -> int | None:
        """A number, or None where it is absent or null."""
        value = self.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST):
            return value
        raise InputError(f"config of {self.name}: {key} is {value!r}, not a number of elements")

    def size(self, key: str, default: int | None = None) -> int:
        """A number; ``default`` where it is absent or null."""
        value = self.maybe(key)
        if value is None:
            value = default
        if value is None:
            raise InputError(f"config of {self.name} ({self.model_type}) has no {key}")
        return value

    def flag(self, key: str | bool, default: bool = False) -> bool:
        """A boolean key; a constant stands for itself."""
        if isinstance(key, bool):
            return key
        value = self.get(key)
        return default if value is None else bool(value)

    def strings(self, key: str) -> list[str] | None:
        """A list of strings, or None where it is absent."""
        value = self.get(key)
        return [str(item) for item in cast("list[object]", value)] if isinstance(value, list) else None

    def ints(self, key: str) -> list[int]:
        """A list of numbers; empty where it is absent."""
        value = self.get(key)
        items = cast("list[object]", value) if isinstance(value, list) else []
        return [item for item in items if isinstance(item, int)]

    def section(self, key: str, model_type: str = "") -> Config | None:
        """A nested config such as ``text_config``; None where it is absent or null."""
        value = self.get(key)
        if not isinstance(value, Mapping):
            return None
        nested = cast("Mapping[str, object]", value)
        default = self._defaults.get(key)
        usual = cast("Mapping[str, object]", default).get("model_type") if isinstance(default, Mapping) else None
        return Config(nested, str(nested.get("model_type") or model_type or usual or ""), self.name)

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.size("hidden_size")

    @property
    def layers(self) -> int:
        """Decoder layers. More than ten thousand are taken for a slip of the pen."""
        layers = self.size("num_hidden_layers")
        if layers > 10_000:
            raise InputError(f"config of {self.name} has {layers} layers")
        return layers

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.size("num_attention_heads")

    @property
    def kv_heads(self) -> int:
        """Key and value heads; as many as query heads where the config does not say."""
        return self.maybe("num_key_value_heads") or self.heads

    @property
    def head_dim(self) -> int:
        """Width of a head; hidden / heads where the config does not say."""
        return self.maybe("head_dim") or self.hidden // self.heads

    @property
    def experts(self) -> int:
        """Routed experts of a sparse layer; 0 in a dense model."""
        return self.maybe("num_experts") or 0


@cache
def class_defaults() -> Mapping[str, Mapping[str, object]]:
    """Structural defaults of transformers' config classes by model type."""
    return {model_type: values for group in defaults_by_module().values() for model_type, values in group.items()}


@cache
def defaults_by_module() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    """``defaults.json``, written by ``make defaults``: by the module that has the family's row, "" for towers."""
    import json

    return json.loads(Path(__file__).with_name("defaults.json").read_bytes())
