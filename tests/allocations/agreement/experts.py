# pyright: basic
"""Hybrids, and experts."""

from typing import Any

from .models import CUT, METHODS, WAYS

SETTINGS: dict[str, dict[str, Any]] = {}
MAMBA: dict[str, Any] = {
    "lora_target_linear": False,
    "lora_target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "in_proj", "up_proj"],
}
SETTINGS |= {
    f"falcon-h1 {size}, {method}{way}": {
        "base_model": f"tiiuae/Falcon-H1-{size}-Base",
        **METHODS[method],
        **(MAMBA if "LoRA" in method else {}),
        **keys,
    }
    for size in ("0.5B", "7B")
    for method in ("full", "LoRA", "LoRA with dropout", "QLoRA")
    for way, keys in (("", {}), (", checkpointing", WAYS["checkpointing"]))
}

OF_ATTENTION: dict[str, Any] = {
    "lora_target_linear": False,
    "lora_target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "in_proj"],
}
SPARSE = {
    "glm4.5 air": "zai-org/GLM-4.5-Air",
    "lfm2 8B": "LiquidAI/LFM2-8B-A1B",
    "glm4.7 flash": "zai-org/GLM-4.7-Flash",
    "olmoe 7B": "allenai/OLMoE-1B-7B-0924",
    "mixtral 8x7B": "mistralai/Mixtral-8x7B-v0.1",
}
PACKED = {**METHODS["QLoRA"], "quantize_moe_experts": True}
SETTINGS |= {
    f"{name}, {method}{way}": {"base_model": model, **keys, **targets, **more}
    for name, model in SPARSE.items()
    for method, keys, targets in (
        ("full", {}, {}),
        ("LoRA with dropout", METHODS["LoRA with dropout"], OF_ATTENTION),
        ("QLoRA", METHODS["QLoRA"], OF_ATTENTION),
        ("QLoRA, packed experts", PACKED, OF_ATTENTION),
        ("8-bit LoRA", METHODS["8-bit LoRA"], OF_ATTENTION),
        ("8-bit LoRA, packed experts", {**METHODS["8-bit LoRA"], "quantize_moe_experts": True}, OF_ATTENTION),
    )
    for way, more in (("", {}), (", checkpointing", WAYS["checkpointing"]))
}
SETTINGS |= {
    f"qwen3.5 35B, {packed}{method}, checkpointing": {
        "base_model": "Qwen/Qwen3.5-35B-A3B",
        "sample_packing": bool(packed),
        "micro_batch_size": 1 if packed else 2,
        **keys,
        **OF_ATTENTION,
        **WAYS["checkpointing"],
    }
    for packed in ("", "packed, ")
    for method, keys in (
        ("LoRA with dropout", METHODS["LoRA with dropout"]),
        ("QLoRA, packed experts", PACKED),
        ("8-bit LoRA, packed experts", {**METHODS["8-bit LoRA"], "quantize_moe_experts": True}),
    )
}
SETTINGS |= {
    ", ".join(filter(None, (f"nemotron 3 {size}", method, loss, way))): {
        "base_model": f"nvidia/NVIDIA-Nemotron-3-{model}-BF16",
        **keys,
        **OF_ATTENTION,
        "lora_target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
        **more,
        **WAYS[way],
    }
    for size, model in (("nano", "Nano-30B-A3B"), ("super", "Super-120B-A12B"))
    for method, keys in (
        ("QLoRA, packed experts", PACKED),
        ("8-bit LoRA, packed experts", {**METHODS["8-bit LoRA"], "quantize_moe_experts": True}),
    )
    for loss, more in (("", {}), ("cut loss", CUT))
    for way in ("checkpointing", "checkpointing by hooks")
    if "QLoRA" in method or way == "checkpointing"
}

SETTINGS |= {
    f"mistral small 4, {name}{way}": {
        "base_model": "mistralai/Mistral-Small-4-119B-2603",
        **METHODS[method],
        **more,
        "lora_target_linear": False,
        "lora_target_modules": ["q_b_proj", "o_proj"],
        **keys,
    }
    for name, method, more in (
        ("LoRA with dropout", "LoRA with dropout", {}),
        ("QLoRA, packed experts", "QLoRA", {"quantize_moe_experts": True}),
        ("8-bit LoRA, packed experts", "8-bit LoRA", {"quantize_moe_experts": True}),
    )
    for way, keys in (("", {}), (", checkpointing", WAYS["checkpointing"]))
}
