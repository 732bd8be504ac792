# pyright: basic
"""DDP on eight GPUs."""

from typing import Any

from .models import CUT, METHODS, MODELS, WAYS

SETTINGS: dict[str, dict[str, Any]] = (
    {
        ", ".join(filter(None, (model, method, "DDP", way))): {
            "base_model": MODELS[model],
            **METHODS[method],
            **WAYS[way],
        }
        for model in ("llama 8B", "llama 1B", "qwen3 0.6B")
        for method in METHODS
        for way in WAYS
    }
    | {
        f"llama 1B, {method}, DDP, four micro-steps": {
            "base_model": MODELS["llama 1B"],
            **METHODS[method],
            "gradient_accumulation_steps": 4,
        }
        for method in ("full", "LoRA")
    }
    | {
        f"llama 1B, {method}, DDP, {name}": {"base_model": MODELS["llama 1B"], **METHODS[method], **keys}
        for method in ("full", "QLoRA")
        for name, keys in {
            "capped": {"ddp_bucket_cap_mb": 100},
            "looks for unused": {"ddp_find_unused_parameters": True},
            "looks for unused, cut loss": {"ddp_find_unused_parameters": True, **CUT},
        }.items()
    }
)
