# pyright: basic
"""Decoders without experts: methods, optimizers, losses of the model itself, kernels."""

from typing import Any

from .models import ALONE, CUT, HOOKS, KERNELS, LORA, METHODS, MODELS, PADDED, TABLES, WAYS, WIDER

SITES = ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj")
SETTINGS: dict[str, dict[str, Any]] = {
    ", ".join(filter(None, (model, method, way))): {"base_model": MODELS[model], **keys, **more}
    for model in MODELS
    for method, keys in METHODS.items()
    for way, more in WAYS.items()
}
SETTINGS |= {
    ", ".join(filter(None, (name, method, way))): {"base_model": model, **METHODS[method], **WAYS[way]}
    for name, model in WIDER.items()
    for method, way in (
        ("full", ""),
        ("LoRA with dropout", ""),
        ("LoRA", "checkpointing"),
        ("QLoRA", ""),
        ("QLoRA", "checkpointing"),
    )
}
SETTINGS |= {
    **{
        f"{model}, {method}, fused kernels{way}": {"base_model": MODELS[model], **METHODS[method], **KERNELS, **keys}
        for model in ("llama 8B", "qwen3 0.6B")
        for method in ("LoRA", "LoRA with dropout", "QLoRA")
        for way, keys in (("", {}), (", checkpointing", {"gradient_checkpointing": True}))
    },
    "llama 1B, full, foreach": {"base_model": MODELS["llama 1B"], "optimizer": "adamw_torch"},
    "llama 1B, full, four micro-steps": {"base_model": MODELS["llama 1B"], "gradient_accumulation_steps": 4},
    "qwen3 0.6B, full, 8-bit states": {"base_model": MODELS["qwen3 0.6B"], "optimizer": "adamw_bnb_8bit"},
    "llama 1B, full, paged states": {"base_model": MODELS["llama 1B"], "optimizer": "paged_adamw_8bit"},
    "llama 8B, LoRA, queries and values": {
        **LORA,
        "base_model": MODELS["llama 8B"],
        "lora_target_linear": False,
        "lora_target_modules": ["q_proj", "v_proj"],
        **HOOKS,
    },
    "llama 8B, LoRA, some layers": {
        **LORA,
        "base_model": MODELS["llama 8B"],
        "lora_target_linear": False,
        "lora_target_modules": [f"layers.{index}.{name}" for index in (0, 1, 30) for name in SITES],
    },
    "qwen2 1.5B, QLoRA, one long row": {
        **METHODS["QLoRA"],
        "base_model": MODELS["qwen2 1.5B"],
        "micro_batch_size": 1,
        "sequence_len": 8192,
        "gradient_checkpointing": True,
    },
}
SETTINGS |= {
    f"{model}, {method}, cut loss{way}": {"base_model": MODELS[model], **METHODS[method], **CUT, **keys}
    for model in ("llama 8B", "qwen3 0.6B")
    for method in ("full", "LoRA", "QLoRA")
    for way, keys in (("", {}), (", checkpointing", {"gradient_checkpointing": True}))
}
SETTINGS |= {
    ", ".join(filter(None, (model, "full, fp32 tables", way))): {"base_model": MODELS[model], **keys, **ALONE}
    for model in ("llama 8B", "llama 1B", "qwen3 0.6B")
    for way, keys in WAYS.items()
}
SETTINGS |= {
    ", ".join(filter(None, (model, method, "trained tables", way))): {
        "base_model": MODELS[model],
        **METHODS[method],
        **TABLES,
        **WAYS[way],
    }
    for model in ("llama 8B", "llama 1B", "qwen3 0.6B")
    for method in ("LoRA", "QLoRA")
    for way in ("", "checkpointing")
}
SETTINGS |= {
    f"llama 1B, LoRA, trained tables, {name}": {"base_model": MODELS["llama 1B"], **LORA, **TABLES, **keys}
    for name, keys in {
        "8-bit states": {"optimizer": "adamw_bnb_8bit", **WAYS["checkpointing"]},
        "foreach": {"optimizer": "adamw_torch"},
        "cut loss, four micro-steps": {**CUT, "gradient_accumulation_steps": 4, **HOOKS},
    }.items()
}
SETTINGS |= {
    f"{model}, {method}, padded{way}": {"base_model": {**MODELS, **WIDER}[model], **METHODS[method], **PADDED, **keys}
    for model in ("llama 1B", "llama 8B", "qwen3 0.6B", "phi3 mini", "pythia 1.4B")
    for method in ("full", "LoRA", "QLoRA", "8-bit LoRA")
    for way, keys in (("", {}), (", checkpointing", WAYS["checkpointing"]))
}
SETTINGS["pythia 1.4B, 8-bit LoRA of attention, padded"] = {
    **METHODS["8-bit LoRA"],
    **PADDED,
    "base_model": WIDER["pythia 1.4B"],
    "lora_target_linear": False,
    "lora_target_modules": ["query_key_value"],
}
SETTINGS["llama 2 7B, LoRA, xformers"] = {
    **LORA,
    "base_model": "meta-llama/Llama-2-7b-hf",
    "attn_implementation": "xformers",
}
SETTINGS["llama 1B, LoRA, padded, fp32 weights"] = {
    **LORA,
    **PADDED,
    "load_in_4bit": True,
    "base_model": MODELS["llama 1B"],
    "gradient_checkpointing": True,
}
SETTINGS["pythia 1.4B, LoRA, a table by its old name"] = {
    **LORA,
    **WAYS["checkpointing"],
    "base_model": WIDER["pythia 1.4B"],
    "lora_modules_to_save": ["embed_in", "embed_out"],
}
LOW_BIT = ("adamw_torch_8bit", "adamw_torch_4bit", "ao_adamw_fp8")
SETTINGS |= {
    f"{model}, {method}, {optimizer}": {"base_model": MODELS[model], **METHODS[method], **more, "optimizer": optimizer}
    for optimizer in LOW_BIT
    for model, method, more in (
        ("llama 1B", "full", {}),
        ("qwen3 0.6B", "full", WAYS["checkpointing"]),
        ("llama 8B", "QLoRA", WAYS["checkpointing"]),
        ("llama 1B", "LoRA", {**TABLES, **WAYS["checkpointing"]}),
    )
}

LIGER: dict[str, Any] = {"plugins": ["axolotl.integrations.liger.LigerPlugin"], "liger_rms_norm": True}
LIGER |= {"liger_glu_activation": True, "liger_rope": True}
LIGERS: dict[str, dict[str, Any]] = {
    "liger": LIGER,
    "liger and its loss": {**LIGER, "liger_cross_entropy": True},
    "liger and its fused loss": {**LIGER, "liger_fused_linear_cross_entropy": True},
}
SETTINGS |= {
    ", ".join(filter(None, (model, method, name, way))): {
        "base_model": {**MODELS, **WIDER}[model],
        **METHODS[method],
        **keys,
        **WAYS[way],
    }
    for model, way in (("llama 8B", "checkpointing"), ("mistral 7B", ""), ("qwen3 0.6B", ""), ("gemma 2B", ""))
    for method in ("full", "LoRA", "QLoRA")
    for name, keys in LIGERS.items()
}
UNFROZEN = {"unfrozen_parameters": ["^model.language_model.*", "^lm_head.*"], **WAYS["checkpointing by hooks"]}
SETTINGS |= {
    f"{model}, {method}, all frozen": {"base_model": {**MODELS, **WIDER}[model], **METHODS[method], **UNFROZEN}
    for model in ("llama 1B", "gemma3 1B")
    for method in ("LoRA", "QLoRA")
}
SETTINGS |= {
    ", ".join(filter(None, (model, method, "fp16", way))): {
        "base_model": MODELS[model],
        **METHODS[method],
        **WAYS[way],
        "bf16": False,
        "fp16": True,
    }
    for model in ("llama 1B", "qwen3 0.6B")
    for method in ("LoRA with dropout", "QLoRA", "8-bit LoRA")
    for way in WAYS
}
