# pyright: basic
"""The models of the settings, and ways to train them that many settings share."""

from typing import Any

BASE: dict[str, Any] = {
    "datasets": [{"path": "some/data", "type": "alpaca"}],
    "learning_rate": 1e-4,
    "micro_batch_size": 2,
    "gradient_accumulation_steps": 1,
    "sequence_len": 2048,
    "bf16": True,
    "attn_implementation": "flash_attention_2",
    "optimizer": "adamw_torch_fused",
    "lora_mlp_kernel": False,
    "lora_qkv_kernel": False,
    "lora_o_kernel": False,
}
MODELS = {
    "llama 8B": "meta-llama/Llama-3.1-8B",
    "llama 1B": "meta-llama/Llama-3.2-1B",
    "mistral 7B": "mistralai/Mistral-7B-v0.1",
    "qwen2 1.5B": "Qwen/Qwen2.5-1.5B",
    "qwen3 0.6B": "Qwen/Qwen3-0.6B",
}
WIDER = {
    "gemma 2B": "google/gemma-2b",
    "gemma2 2B": "google/gemma-2-2b",
    "gemma3 1B": "google/gemma-3-1b-pt",
    "phi3 mini": "microsoft/Phi-3-mini-4k-instruct",
    "granite 2B": "ibm-granite/granite-3.1-2b-base",
    "phi-2": "microsoft/phi-2",
    "pythia 1.4B": "EleutherAI/pythia-1.4b-deduped",
    "hunyuan 0.5B": "tencent/Hunyuan-0.5B-Instruct",
    "smollm3 3B": "HuggingFaceTB/SmolLM3-3B",
    "seed-oss 36B": "ByteDance-Seed/Seed-OSS-36B-Instruct",
    "glm4 32B": "THUDM/GLM-4-32B-0414",
    "olmo3 7B": "allenai/Olmo-3-7B-Instruct-SFT",
    "stablelm 1.6B": "stabilityai/stablelm-2-1_6b",
    "starcoder2 3B": "bigcode/starcoder2-3b",
    "nemotron 4B": "nvidia/Nemotron-Mini-4B-Instruct",
    "afm 4.5B": "arcee-ai/AFM-4.5B",
    "mimo 7B": "XiaomiMiMo/MiMo-7B-RL",
    "apertus 8B": "swiss-ai/Apertus-8B-2509",
    "lfm2 1.2B": "LiquidAI/LFM2-1.2B",
}
"""Models of families with layers of their own."""
LORA: dict[str, Any] = {"adapter": "lora", "lora_r": 16, "lora_alpha": 32, "lora_target_linear": True}
METHODS: dict[str, dict[str, Any]] = {
    "full": {},
    "LoRA": LORA,
    "LoRA with dropout": {**LORA, "lora_dropout": 0.05},
    "QLoRA": {**LORA, "adapter": "qlora", "load_in_4bit": True},
    "8-bit LoRA": {**LORA, "load_in_8bit": True},
}
HOOKS = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}}
WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "checkpointing": {"gradient_checkpointing": True},
    "checkpointing by hooks": HOOKS,
}
KERNELS = dict.fromkeys(("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"), True)
ALONE = {"attn_implementation": None, "micro_batch_size": 1, "pad_to_sequence_len": False}
"""sdpa without a mask."""
CUT = {"plugins": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"], "cut_cross_entropy": True}
TABLES = {"lora_modules_to_save": ["embed_tokens", "lm_head"]}
PADDED = {"attn_implementation": "sdpa"}
"""sdpa with a mask, for rows that may be padded."""
OF_THE_DECODER = {"lora_target_linear": False, "lora_target_modules": r"model.language_model.layers.[\d]+.*_proj"}
