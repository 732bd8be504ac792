# pyright: basic
"""A model's config with few layers, all kinds of them among these: what full-size peaks hide is then visible."""

from collections.abc import Mapping
from typing import Any

from advisor.models.catalogue import lookup

LAYERS = 4
MORE = {"gemma3_text": 6}
"""A model type whose kinds of layers do not all come among the first: each sixth of Gemma 3's has no window."""
LISTS = ("layer_types", "mlp_layer_types")
PATTERN = "hybrid_override_pattern"
"""Nemotron-H's kinds of layers, a letter each."""
WHOLE = "fullatt_block_indexes"
"""Layers of Qwen2.5-VL's tower without windows."""


def shortened(model: str) -> dict[str, Any]:
    """What ``overrides_of_model_config`` must say: decoders and towers keep their first layers."""
    entry = lookup(model)
    assert entry is not None
    config: Mapping[str, Any] = entry["config"]
    text, vision = config.get("text_config"), config.get("vision_config")
    found: dict[str, Any] = {"text_config": decoder(text)} if text else decoder(config)
    return {**found, "vision_config": tower(vision)} if vision else found


def decoder(config: Mapping[str, Any]) -> dict[str, Any]:
    """The first layers of a decoder."""
    layers = MORE.get(config["model_type"], LAYERS)
    if PATTERN in config:
        layers = config[PATTERN].index("*") + 2
        return {"num_hidden_layers": layers, PATTERN: config[PATTERN][:layers]}
    return {"num_hidden_layers": layers, **{key: config[key][:layers] for key in LISTS if key in config}}


def tower(config: Mapping[str, Any]) -> dict[str, Any]:
    """The first layers of an encoder; the last of them is the one without windows."""
    found: dict[str, Any] = {"depth" if "depth" in config else "num_hidden_layers": LAYERS}
    return {**found, WHOLE: [LAYERS - 1]} if config.get("model_type") == "qwen2_5_vl" else found
