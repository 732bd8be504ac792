# pyright: basic
"""Losses of preferences, and heads that classify."""

from typing import Any

from .models import METHODS, MODELS, PADDED, WAYS

SETTINGS: dict[str, dict[str, Any]] = {}
DPO: dict[str, Any] = {"rl": "dpo", "datasets": [{"path": "some/data", "type": "chatml.intel"}], "sequence_len": 1024}
SETTINGS |= {
    f"{model}, {method}, preferences{way}": {"base_model": MODELS[model], **METHODS[method], **DPO, **keys}
    for model in ("llama 8B", "llama 1B", "mistral 7B", "qwen2 1.5B")
    for method in ("full", "LoRA", "QLoRA", "8-bit LoRA")
    for way, keys in (("", {}), (", checkpointing", WAYS["checkpointing"]), (", padded", PADDED))
}
ODDS: dict[str, Any] = {"rl": "orpo", "datasets": [{"path": "some/data", "type": "chat_template.argilla"}]}
SIMPO: dict[str, Any] = {**ODDS, "rl": "simpo"}
RATIOS: dict[str, Any] = {**SIMPO, "cpo_alpha": 0}
UNPAIRED: dict[str, Any] = {"rl": "kto", "datasets": [{"path": "some/data", "type": "llama3.ultra"}]}
SETTINGS |= {
    f"{model}, {method}, {name}{way}": {
        "base_model": MODELS[model],
        **METHODS[method],
        **loss,
        "sequence_len": 1024,
        **keys,
    }
    for name, loss in (("odds", ODDS), ("simpo", SIMPO), ("simpo without likelihood", RATIOS), ("unpaired", UNPAIRED))
    for model in ("llama 8B", "mistral 7B", "qwen2 1.5B")
    for method in ("full", "LoRA", "QLoRA", "8-bit LoRA")
    for way, keys in (("", {}), (", checkpointing", WAYS["checkpointing"]), (", padded", PADDED))
}
CLASSIFIERS = {"a reward model": {"reward_model": True}, "a process reward model": {"process_reward_model": True}}
SETTINGS |= {
    ", ".join(filter(None, (model, "full", name, way))): {"base_model": MODELS[model], **keys, **WAYS[way]}
    for model in ("llama 8B", "qwen2 1.5B", "qwen3 0.6B")
    for name, keys in CLASSIFIERS.items()
    for way in WAYS
}
