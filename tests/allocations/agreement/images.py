# pyright: basic
"""Models that see: text alone with a tower that rests, and images."""

from typing import Any

from .models import CUT, METHODS, OF_THE_DECODER, WAYS

SETTINGS: dict[str, dict[str, Any]] = {
    f"mistral 24B with a tower, {method}{way}": {
        "base_model": "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
        **METHODS[method],
        **targets,
        **keys,
    }
    for method, targets in (("LoRA", OF_THE_DECODER), ("QLoRA", OF_THE_DECODER), ("8-bit LoRA", {}))
    for way, keys in (("", {}), (", checkpointing", WAYS["checkpointing"]))
}

SETTINGS |= {
    f"{name} with a tower, {method}, checkpointing": {
        "base_model": model,
        **METHODS[method],
        **OF_THE_DECODER,
        **WAYS["checkpointing"],
    }
    for name, model in {
        "pixtral 12B": "mistral-community/pixtral-12b",
        "internvl 8B": "OpenGVLab/InternVL3_5-8B-HF",
    }.items()
    for method in ("LoRA", "QLoRA")
}
SETTINGS |= {
    f"gemma3 4B with a tower, {method}{way}": {
        "base_model": "google/gemma-3-4b-it",
        "sample_packing": True,
        **METHODS[method],
        **targets,
        **keys,
    }
    for method, targets, way, keys in (
        ("LoRA", OF_THE_DECODER, "", {}),
        ("LoRA", OF_THE_DECODER, ", checkpointing", WAYS["checkpointing"]),
        ("QLoRA", {"unfrozen_parameters": ["^lm_head.*"]}, ", checkpointing", WAYS["checkpointing"]),
    )
}
AXES = {
    "qwen2-vl 7B": "Qwen/Qwen2-VL-7B-Instruct",
    "qwen2.5-vl 7B": "Qwen/Qwen2.5-VL-7B-Instruct",
    "glm4.1v 9B": "zai-org/GLM-4.1V-9B-Thinking",
    "glm4.6v flash": "zai-org/GLM-4.6V-Flash",
    "paddleocr-vl": "PaddlePaddle/PaddleOCR-VL-1.6",
}
DROPS = {"LoRA with dropout": METHODS["LoRA with dropout"], "QLoRA": {**METHODS["QLoRA"], "lora_dropout": 0.05}}
DROPS["8-bit LoRA"] = METHODS["8-bit LoRA"]
SETTINGS |= {
    ", ".join(filter(None, (name, "text alone", method, way))): {
        "base_model": model,
        **keys,
        "lora_target_linear": False,
        "lora_target_modules": r"model.language_model.layers.[\d]+.*_proj",
        **WAYS[way],
    }
    for name, model in AXES.items()
    for method, keys in DROPS.items()
    for way in WAYS
}
OF_QWEN3_5: dict[str, Any] = {
    "lora_target_linear": False,
    "lora_target_modules": r"model.language_model.layers.[\d]+.*proj.*",
}
SETTINGS |= {
    ", ".join(filter(None, ("qwen3.5 9B", packed, method, way))): {
        "base_model": "Qwen/Qwen3.5-9B",
        "sample_packing": bool(packed),
        "micro_batch_size": 1 if packed else 2,
        **keys,
        **OF_QWEN3_5,
        **WAYS[way],
    }
    for packed in ("", "packed")
    for method, keys in DROPS.items()
    for way in WAYS
}
SEES: dict[str, Any] = {
    "datasets": [{"path": "some/data", "type": "chat_template"}],
    "processor_type": "AutoProcessor",
    "skip_prepare_dataset": True,
    "remove_unused_columns": False,
    "sample_packing": False,
}
SEEING = {
    "gemma3 4B": "google/gemma-3-4b-it",
    "internvl 8B": "OpenGVLab/InternVL3_5-8B-HF",
    "pixtral 12B": "mistral-community/pixtral-12b",
    "mistral 24B": "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
    "qwen2-vl 7B": "Qwen/Qwen2-VL-7B-Instruct",
    "qwen2.5-vl 7B": "Qwen/Qwen2.5-VL-7B-Instruct",
    "glm4.1v 9B": "zai-org/GLM-4.1V-9B-Thinking",
}
SETTINGS |= {
    ", ".join(filter(None, (f"{name} sees", method, way))): {
        "base_model": model,
        **SEES,
        **METHODS[method],
        **OF_THE_DECODER,
        **WAYS[way],
    }
    for name, model in SEEING.items()
    for method in ("LoRA with dropout", "QLoRA", "8-bit LoRA")
    for way in WAYS
}
SETTINGS |= {
    f"{name} sees, {method}, cut loss, four micro-steps": {
        "base_model": model,
        **SEES,
        **METHODS[method],
        **OF_THE_DECODER,
        **WAYS["checkpointing"],
        **CUT,
        "gradient_accumulation_steps": 4,
    }
    for name, model in SEEING.items()
    for method in ("LoRA", "QLoRA")
}
SETTINGS |= {
    ", ".join(filter(None, ("lfm2 450M sees", method, loss, way))): {
        "base_model": "LiquidAI/LFM2-VL-450M",
        **SEES,
        **METHODS[method],
        **OF_THE_DECODER,
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 4,
        **keys,
        **WAYS[way],
    }
    for method in ("LoRA", "LoRA with dropout")
    for loss, keys in (("", {}), ("cut loss", CUT))
    for way in ("checkpointing", "checkpointing by hooks")
}
OF_TEXT = {**OF_THE_DECODER, "lora_target_modules": r"model.text_model.layers.[\d]+.*_proj"}
SETTINGS |= {
    ", ".join(filter(None, ("smolvlm2 2B sees", method, way))): {
        "base_model": "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        **SEES,
        **METHODS[method],
        **OF_TEXT,
        **WAYS[way],
    }
    for method in ("LoRA with dropout", "QLoRA", "8-bit LoRA")
    for way in WAYS
}
