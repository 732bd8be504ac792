# pyright: basic
"""Checkpointed layers alone: a cut loss is no peak, so the backward of a layer is."""

from typing import Any

from .models import CUT, METHODS, MODELS, WAYS, WIDER

SETTINGS: dict[str, dict[str, Any]] = {
    f"{model}, {method}{drops}, layers alone": {
        "base_model": name,
        **METHODS[method],
        "lora_dropout": dropout,
        **CUT,
        **WAYS["checkpointing"],
    }
    for model, name in {**MODELS, **WIDER}.items()
    if "pythia" not in model and "starcoder2" not in model and "gemma2" not in model and "granite" not in model
    for method in ("LoRA", "QLoRA", "8-bit LoRA")
    for drops, dropout in (("", 0.0), (" with dropout", 0.05))
}
