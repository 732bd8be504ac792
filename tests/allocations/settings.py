"""The settings whose tapes are recorded."""

from typing import Any

SIZES: dict[str, Any] = {
    "vocab_size": 1000,
    "hidden_size": 384,
    "intermediate_size": 704,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
}
LLAMA = {"model_type": "llama", **SIZES}
TIED = {**LLAMA, "tie_word_embeddings": True}
MISTRAL = {"model_type": "mistral", **SIZES, "head_dim": 48, "sliding_window": None}
QWEN2 = {"model_type": "qwen2", **SIZES}
QWEN3 = {"model_type": "qwen3", **SIZES, "head_dim": 48}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GEMMA = {"model_type": "gemma", **SIZES, **TOKENS, "head_dim": 48, "tie_word_embeddings": True}
GEMMA2 = {**GEMMA, "model_type": "gemma2"}
SLIDING = ("sliding_attention", "sliding_attention", "full_attention")
GEMMA3 = {**GEMMA, "model_type": "gemma3_text", "layer_types": list(SLIDING)}
PHI3 = {"model_type": "phi3", **SIZES, **TOKENS}
PHI = {"model_type": "phi", **SIZES, **TOKENS, "num_key_value_heads": 6}
NEOX = {"model_type": "gpt_neox", **SIZES, **TOKENS, "num_key_value_heads": 6}
HUNYUAN = {"model_type": "hunyuan_v1_dense", **SIZES, **TOKENS, "head_dim": 48}
CWM = {"model_type": "cwm", **SIZES}
SEED = {"model_type": "seed_oss", **SIZES, **TOKENS, "head_dim": 48}
GLM4 = {"model_type": "glm4", **SIZES, **TOKENS, "head_dim": 64}
OLMO3 = {"model_type": "olmo3", **SIZES, **TOKENS, "layer_types": list(SLIDING)}
STABLELM = {"model_type": "stablelm", **SIZES, **TOKENS}
STARCODER2 = {"model_type": "starcoder2", **SIZES, **TOKENS, "residual_dropout": 0.1}
NEMOTRON = {"model_type": "nemotron", **SIZES, **TOKENS, "head_dim": 64}
ARCEE = {"model_type": "arcee", **SIZES, **TOKENS}
MINISTRAL3 = {"model_type": "ministral3", **SIZES, **TOKENS, "head_dim": 48}
EVERY = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

BASE: dict[str, Any] = {
    "config": LLAMA,
    "method": "full",
    "attention": "flash",
    "checkpointing": None,
    "optimizer": "adamw_torch_fused",
    "rows": 2,
    "length": 256,
    "micro_steps": 1,
    "rank": 8,
    "dropout": 0.0,
    "targets": (),
    "fp32_embeddings": False,
    "kernels": (),
    "loss": "plain",
    "saved": (),
    "padded": False,
    "preferences": None,
    "chosen": False,
    "liger": (),
    "classifier": None,
    "unfrozen": (),
    "packed_experts": False,
    "packed": False,
    "images": None,
    "upcast": False,
    "replicas": "",
}
KERNELS = ("mlp", "qkv", "o")
LORA = {"method": "lora", "targets": EVERY}
QLORA = {"method": "qlora", "targets": EVERY}
INT8 = {"method": "int8", "targets": EVERY}
OF_PHI3 = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
OF_PHI = ("q_proj", "k_proj", "v_proj", "dense", "fc1", "fc2")
OF_NEOX = ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h")
REENTRANT = {"checkpointing": "reentrant"}
HOOKS = {"checkpointing": "non-reentrant"}
CUT = {"loss": "cut"}

CHANGES: dict[str, dict[str, Any]] = {
    "full": {},
    "full, foreach": {"optimizer": "adamw_torch"},
    "full, one row": {"rows": 1},
    "full, odd length": {"length": 203},
    "full, two micro-steps": {"micro_steps": 2},
    "full, tied": {"config": TIED},
    "full, tied, two micro-steps": {"config": TIED, "micro_steps": 2},
    "full, fp32 embeddings": {"fp32_embeddings": True, "optimizer": "adamw_torch"},
    "full, fp32 embeddings, tied, reentrant": {"fp32_embeddings": True, "config": TIED, **REENTRANT},
    "full, reentrant": REENTRANT,
    "full, non-reentrant": HOOKS,
    "full, sdpa": {"attention": "sdpa"},
    "full, sdpa, fp32 embeddings": {"attention": "sdpa", "fp32_embeddings": True},
    "full, mistral": {"config": MISTRAL},
    "full, qwen2": {"config": QWEN2},
    "full, qwen3": {"config": QWEN3},
    "full, qwen3, non-reentrant": {"config": QWEN3, **HOOKS},
    "lora": LORA,
    "lora, dropout": {**LORA, "dropout": 0.1},
    "lora, queries and values": {**LORA, "targets": ("q_proj", "v_proj")},
    "lora, attention": {**LORA, "targets": EVERY[:4], "dropout": 0.1},
    "lora, reentrant": {**LORA, **REENTRANT},
    "lora, non-reentrant": {**LORA, **HOOKS},
    "lora, dropout, reentrant, two micro-steps": {**LORA, **REENTRANT, "dropout": 0.1, "micro_steps": 2},
    "lora, qwen2": {**LORA, "config": QWEN2},
    "lora, qwen3, reentrant": {**LORA, "config": QWEN3, **REENTRANT},
    "lora, fused": {**LORA, "kernels": KERNELS},
    "lora, fused, dropout, reentrant": {**LORA, **REENTRANT, "kernels": KERNELS, "dropout": 0.1},
    "lora, fused, qwen3, non-reentrant": {**LORA, **HOOKS, "kernels": KERNELS, "config": QWEN3},
    "full, cut loss": CUT,
    "full, cut loss, tied, reentrant, two micro-steps": {**CUT, **REENTRANT, "config": TIED, "micro_steps": 2},
    "lora, cut loss, one row": {**LORA, **CUT, "rows": 1},
    "qlora": QLORA,
    "int8": INT8,
    "int8, dropout, reentrant": {**INT8, **REENTRANT, "dropout": 0.1},
    "int8, non-reentrant, attention, two micro-steps": {**INT8, **HOOKS, "targets": EVERY[:4], "micro_steps": 2},
    "qlora, dropout, reentrant": {**QLORA, **REENTRANT, "dropout": 0.1},
    "qlora, non-reentrant, one row": {**QLORA, **HOOKS, "rows": 1},
    "qlora, qwen3, tied, reentrant": {**QLORA, **REENTRANT, "config": {**QWEN3, "tie_word_embeddings": True}},
}
SOME = ("layers.0.self_attn.q_proj", "layers.0.mlp.down_proj", "layers.2.self_attn.v_proj", "layers.2.mlp.up_proj")
OF_FAMILIES: dict[str, dict[str, Any]] = {
    "full, gemma": {"config": GEMMA},
    "full, gemma2": {"config": GEMMA2},
    "lora, dropout, gemma2, reentrant": {**LORA, **REENTRANT, "config": GEMMA2, "dropout": 0.1},
    "full, gemma3": {"config": GEMMA3},
    "qlora, gemma3, non-reentrant, foreach": {**QLORA, **HOOKS, "config": GEMMA3, "optimizer": "adamw_torch"},
    "lora, fused, gemma3, reentrant": {**LORA, **REENTRANT, "kernels": KERNELS, "config": GEMMA3},
    "full, phi3": {"config": PHI3},
    "lora, dropout, phi3, reentrant": {**LORA, **REENTRANT, "config": PHI3, "targets": OF_PHI3, "dropout": 0.1},
    "full, phi3, non-reentrant, two micro-steps": {**HOOKS, "config": PHI3, "micro_steps": 2},
    "full, phi": {"config": PHI},
    "full, phi, reentrant": {**REENTRANT, "config": PHI},
    "qlora, phi, non-reentrant, foreach": {
        **QLORA,
        **HOOKS,
        "config": PHI,
        "targets": OF_PHI,
        "optimizer": "adamw_torch",
    },
    "full, gpt_neox": {"config": NEOX},
    "lora, dropout, gpt_neox, reentrant": {**LORA, **REENTRANT, "config": NEOX, "targets": OF_NEOX, "dropout": 0.1},
    "full, gpt_neox, non-reentrant, two micro-steps": {**HOOKS, "config": NEOX, "micro_steps": 2},
    "full, hunyuan": {"config": HUNYUAN},
    "full, granite": {"config": {"model_type": "granite", **SIZES, **TOKENS}},
    "lora, granite, non-reentrant": {
        **LORA,
        **HOOKS,
        "config": {"model_type": "granite", **SIZES, **TOKENS},
    },
    "lora, some layers, reentrant": {**LORA, **REENTRANT, "targets": SOME},
    "full, cwm": {"config": CWM},
}
OF_GLM4 = (*EVERY[:4], "gate_up_proj", "down_proj")
UNGATED = (*EVERY[:4], "up_proj", "down_proj")
OF_STARCODER2 = (*EVERY[:4], "c_fc", "c_proj")
FOREACH = {"optimizer": "adamw_torch"}
MORE_FAMILIES: dict[str, dict[str, Any]] = {
    "full, smollm3": {"config": {"model_type": "smollm3", **SIZES, **TOKENS}},
    "full, seed_oss": {"config": SEED},
    "lora, dropout, seed_oss, reentrant": {**LORA, **REENTRANT, "config": SEED, "dropout": 0.1},
    "qlora, seed_oss, non-reentrant": {**QLORA, **HOOKS, "config": SEED},
    "full, glm4": {"config": GLM4},
    "lora, dropout, glm4, reentrant": {**LORA, **REENTRANT, "config": GLM4, "targets": OF_GLM4, "dropout": 0.1},
    "full, olmo2": {"config": {"model_type": "olmo2", **SIZES, **TOKENS}},
    "full, olmo3": {"config": OLMO3},
    "qlora, olmo3, non-reentrant, foreach": {**QLORA, **HOOKS, **FOREACH, "config": OLMO3},
    "full, stablelm": {"config": STABLELM},
    "qlora, stablelm, non-reentrant, foreach": {**QLORA, **HOOKS, **FOREACH, "config": STABLELM},
    "full, starcoder2": {"config": STARCODER2},
    "lora, starcoder2, reentrant": {**LORA, **REENTRANT, "config": STARCODER2, "targets": OF_STARCODER2},
    "qlora, starcoder2": {**QLORA, "config": STARCODER2, "targets": OF_STARCODER2},
    "int8, starcoder2, non-reentrant": {**INT8, **HOOKS, "config": STARCODER2, "targets": OF_STARCODER2},
    "full, nemotron": {"config": NEMOTRON},
    "qlora, nemotron, non-reentrant, foreach": {
        **QLORA,
        **HOOKS,
        **FOREACH,
        "config": NEMOTRON,
        "targets": UNGATED,
    },
    "full, arcee": {"config": ARCEE},
    "lora, dropout, arcee, reentrant": {**LORA, **REENTRANT, "config": ARCEE, "targets": UNGATED, "dropout": 0.1},
    "qlora, arcee": {**QLORA, "config": ARCEE, "targets": UNGATED},
    "full, ministral3": {"config": MINISTRAL3},
    "qlora, gpt_neox, non-reentrant": {**QLORA, **HOOKS, "config": NEOX, "targets": OF_NEOX},
    "qlora, hunyuan, reentrant": {**QLORA, **REENTRANT, "config": HUNYUAN},
}
SAVED = {"saved": ("embed_tokens", "lm_head")}
TRAINED_MODULES: dict[str, dict[str, Any]] = {
    "lora, trained tables": {**LORA, **SAVED},
    "lora, dropout, trained tables, tied, reentrant": {
        **LORA,
        **SAVED,
        **REENTRANT,
        "config": TIED,
        "dropout": 0.1,
    },
    "qlora, trained tables, non-reentrant, two micro-steps": {**QLORA, **SAVED, **HOOKS, "micro_steps": 2},
    "lora, trained embedding, foreach": {**LORA, **FOREACH, "saved": ("embed_tokens",)},
}
PADDED = {"attention": "sdpa", "padded": True}
WINDOW = {**MISTRAL, "sliding_window": 4096}
MASKED: dict[str, dict[str, Any]] = {
    "full, padded": PADDED,
    "lora, dropout, padded, window, reentrant": {**LORA, **REENTRANT, **PADDED, "config": WINDOW, "dropout": 0.1},
    "qlora, padded, qwen3, non-reentrant": {**QLORA, **HOOKS, **PADDED, "config": QWEN3},
    "int8, padded, gpt_neox": {**INT8, **PADDED, "config": NEOX, "targets": OF_NEOX},
    "int8, padded, phi3, non-reentrant": {**INT8, **HOOKS, **PADDED, "config": PHI3, "targets": OF_PHI3},
}
PREFERENCES = {"preferences": "dpo", "rows": 4}
PREFERRED: dict[str, dict[str, Any]] = {
    "preferences, full, reentrant": {**REENTRANT, **PREFERENCES},
    "preferences, lora, dropout, two micro-steps": {**LORA, **PREFERENCES, "dropout": 0.1, "micro_steps": 2},
    "preferences, qlora, padded, non-reentrant": {**QLORA, **HOOKS, **PADDED, **PREFERENCES},
    "preferences, int8, reentrant": {**INT8, **REENTRANT, **PREFERENCES},
}
LOW_BIT: dict[str, dict[str, Any]] = {
    "full, 8-bit torchao": {"optimizer": "adamw_torch_8bit"},
    "full, 4-bit torchao, tied, two micro-steps": {"optimizer": "adamw_torch_4bit", "config": TIED, "micro_steps": 2},
    "lora, 4-bit torchao, trained tables, reentrant": {
        **LORA,
        **SAVED,
        **REENTRANT,
        "optimizer": "adamw_torch_4bit",
    },
    "qlora, fp8 torchao": {**QLORA, "optimizer": "ao_adamw_fp8", "rank": 16},
}
OF_LIGER = {"liger": ("rms_norm", "glu", "rope")}
LIGER: dict[str, dict[str, Any]] = {
    "full, liger": {**OF_LIGER, "loss": "liger-fused"},
    "full, liger, tied, reentrant, two micro-steps": {
        **OF_LIGER,
        **REENTRANT,
        "loss": "liger-fused",
        "config": TIED,
        "micro_steps": 2,
    },
    "full, liger cross entropy, non-reentrant, one row": {**OF_LIGER, **HOOKS, "loss": "liger", "rows": 1},
    "lora, dropout, liger, qwen3, non-reentrant": {
        **LORA,
        **OF_LIGER,
        **HOOKS,
        "loss": "liger-fused",
        "config": QWEN3,
        "dropout": 0.1,
    },
    "qlora, liger cross entropy, qwen2, reentrant": {
        **QLORA,
        **OF_LIGER,
        **REENTRANT,
        "loss": "liger",
        "config": QWEN2,
    },
    "lora, liger, queries and values": {
        **LORA,
        **OF_LIGER,
        "loss": "liger-fused",
        "targets": ("q_proj", "v_proj"),
    },
    "full, liger, gemma, non-reentrant": {**OF_LIGER, **HOOKS, "config": GEMMA},
    "qlora, liger, gemma2, non-reentrant": {**QLORA, **OF_LIGER, **HOOKS, "config": GEMMA2},
    "lora, liger, padded, mistral, reentrant": {
        **LORA,
        **OF_LIGER,
        **REENTRANT,
        "config": MISTRAL,
        "attention": "sdpa",
        "padded": True,
    },
    "lora, fused, liger norms": {**LORA, "liger": ("rms_norm",), "kernels": KERNELS},
    "full, liger, rows of several chunks": {**OF_LIGER, "loss": "liger-fused", "rows": 3, "length": 203},
}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "reward model, reentrant, two micro-steps": {
        **REENTRANT,
        "classifier": "sequence",
        "config": {**LLAMA, "pad_token_id": 0},
        "rows": 4,
        "micro_steps": 2,
    },
    "process reward model, qwen2, non-reentrant, foreach": {
        **HOOKS,
        **FOREACH,
        "classifier": "token",
        "config": {**QWEN2, "pad_token_id": 0},
    },
    "process reward model, one row": {"classifier": "token", "config": {**LLAMA, "pad_token_id": 0}, "rows": 1},
}
FROZEN: dict[str, dict[str, Any]] = {
    "lora, fused, frozen, gemma3, non-reentrant": {
        **LORA,
        **HOOKS,
        "kernels": KERNELS,
        "config": GEMMA3,
        "unfrozen": ("^lm_head",),
    },
    "lora, fused, frozen, reentrant": {**LORA, **REENTRANT, "kernels": KERNELS, "unfrozen": ("^lm_head",)},
    "qlora, frozen, reentrant": {**QLORA, **REENTRANT, "unfrozen": ("^model.layers",)},
    "lora, dropout, frozen, gemma3, non-reentrant": {
        **LORA,
        **HOOKS,
        "config": GEMMA3,
        "dropout": 0.1,
        "unfrozen": ("^lm_head",),
    },
}
METHODS = LOW_BIT | LIGER | CLASSIFIERS | FROZEN
APERTUS = {"model_type": "apertus", **SIZES, **TOKENS, "head_dim": 48}
PIXTRAL = {
    "model_type": "pixtral",
    "hidden_size": 128,
    "intermediate_size": 320,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "head_dim": 32,
    "patch_size": 14,
    "image_size": 140,
}
MISTRAL3 = {"model_type": "mistral3", "text_config": MISTRAL, "vision_config": PIXTRAL, "tie_word_embeddings": False}
FALCON_H1 = {
    "model_type": "falcon_h1",
    **SIZES,
    **TOKENS,
    "head_dim": 48,
    "mamba_d_ssm": 320,
    "mamba_n_heads": 10,
    "mamba_d_head": 32,
    "mamba_d_state": 16,
    "mamba_chunk_size": 64,
    "mamba_rms_norm": True,
}
LFM2 = {
    "model_type": "lfm2",
    **SIZES,
    **TOKENS,
    "tie_word_embeddings": True,
    "block_auto_adjust_ff_dim": False,
    "layer_types": ["conv", "conv", "full_attention"],
}
BY_TURNS = {"layer_types": ["conv", "full_attention", "conv"]}
OF_LFM2 = ("q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3")
SIGLIP = {**PIXTRAL, "model_type": "siglip_vision_model", "image_size": 56}
GEMMA3_VISION = {
    "model_type": "gemma3",
    "text_config": GEMMA3,
    "vision_config": SIGLIP,
    "tie_word_embeddings": True,
    "mm_tokens_per_image": 4,
    "image_token_id": 7,
}
ROUTED: dict[str, Any] = {"moe_intermediate_size": 96, "num_experts_per_tok": 2}
GLM4_MOE = {
    "model_type": "glm4_moe",
    **SIZES,
    **TOKENS,
    **ROUTED,
    "head_dim": 48,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "use_qk_norm": True,
    "partial_rotary_factor": 0.5,
}
LFM2_MOE = {
    "model_type": "lfm2_moe",
    **SIZES,
    **TOKENS,
    **ROUTED,
    "tie_word_embeddings": True,
    "num_experts": 8,
    "num_dense_layers": 1,
    "layer_types": ["conv", "conv", "full_attention"],
}
GLM4_LITE = {
    "model_type": "glm4_moe_lite",
    **SIZES,
    **TOKENS,
    **ROUTED,
    "num_key_value_heads": 6,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "mlp_layer_types": ["dense", "sparse", "sparse"],
    "q_lora_rank": 80,
    "kv_lora_rank": 72,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 48,
}
OF_GLM4_LITE = ("q_a_proj", "kv_b_proj", "o_proj")
PACKED = {"packed_experts": True, "targets": EVERY[:4]}
INTERN: dict[str, Any] = {**PIXTRAL, "model_type": "internvl_vision", "patch_size": [14, 14], "image_size": [56, 56]}
INTERNVL = {"model_type": "internvl", "text_config": QWEN3, "vision_config": INTERN, "tie_word_embeddings": False}
LLAVA = {**MISTRAL3, "model_type": "llava", "vision_feature_select_strategy": "full"}
OF_FALCON_H1 = (*EVERY, "in_proj")
OF_DECODERS: dict[str, dict[str, Any]] = {
    "lora, llava, reentrant": {**LORA, **REENTRANT, "config": LLAVA},
    "qlora, internvl, non-reentrant": {**QLORA, **HOOKS, "config": INTERNVL},
    "lora, gemma3 with a tower": {**LORA, "config": GEMMA3_VISION},
    "lora, fused, gemma3 with a tower, reentrant": {**LORA, **REENTRANT, "kernels": KERNELS, "config": GEMMA3_VISION},
    "qlora, gemma3 with a tower, one row, non-reentrant": {**QLORA, **HOOKS, "rows": 1, "config": GEMMA3_VISION},
    "full, glm4_moe": {"config": GLM4_MOE},
    "full, glm4_moe, non-reentrant, two micro-steps": {**HOOKS, "config": GLM4_MOE, "micro_steps": 2},
    "lora, dropout, glm4_moe, reentrant": {
        **LORA,
        **REENTRANT,
        "config": GLM4_MOE,
        "targets": EVERY[:4],
        "dropout": 0.1,
    },
    "qlora, glm4_moe, packed experts": {**QLORA, **PACKED, "config": GLM4_MOE},
    "qlora, glm4_moe, packed experts, non-reentrant, foreach": {
        **QLORA,
        **PACKED,
        **HOOKS,
        **FOREACH,
        "config": GLM4_MOE,
    },
    "full, glm4_moe_lite": {"config": GLM4_LITE},
    "lora, dropout, glm4_moe_lite, reentrant": {
        **LORA,
        **REENTRANT,
        "config": GLM4_LITE,
        "targets": OF_GLM4_LITE,
        "dropout": 0.1,
    },
    "qlora, glm4_moe_lite, packed experts, non-reentrant": {
        **QLORA,
        **PACKED,
        **HOOKS,
        "config": GLM4_LITE,
        "targets": OF_GLM4_LITE,
    },
    "int8, glm4_moe_lite, packed experts, reentrant": {
        **INT8,
        **PACKED,
        **REENTRANT,
        "config": GLM4_LITE,
        "targets": OF_GLM4_LITE,
    },
    "full, lfm2_moe": {"config": LFM2_MOE},
    "lora, dropout, lfm2_moe, reentrant": {
        **LORA,
        **REENTRANT,
        "config": LFM2_MOE,
        "targets": (*EVERY[:3], "in_proj"),
        "dropout": 0.1,
    },
    "int8, lfm2_moe, non-reentrant": {**INT8, **HOOKS, "config": LFM2_MOE, "targets": EVERY[:3]},
    "qlora, lfm2_moe, packed experts, non-reentrant": {**QLORA, **PACKED, **HOOKS, "config": LFM2_MOE},
    "full, lfm2": {"config": LFM2},
    "full, lfm2, cut loss, non-reentrant": {**CUT, **HOOKS, "config": LFM2},
    "lora, dropout, lfm2, reentrant": {**LORA, **REENTRANT, "config": LFM2, "targets": OF_LFM2, "dropout": 0.1},
    "full, lfm2, kinds by turns, reentrant": {**REENTRANT, "config": {**LFM2, **BY_TURNS}},
    "qlora, lfm2, non-reentrant, foreach": {**QLORA, **HOOKS, **FOREACH, "config": LFM2, "targets": OF_LFM2},
    "full, falcon_h1": {"config": FALCON_H1},
    "full, falcon_h1 without a norm, non-reentrant, foreach": {
        **HOOKS,
        **FOREACH,
        "config": {**FALCON_H1, "mamba_rms_norm": False},
    },
    "lora, dropout, falcon_h1, reentrant": {
        **LORA,
        **REENTRANT,
        "config": FALCON_H1,
        "targets": OF_FALCON_H1,
        "dropout": 0.1,
    },
    "qlora, falcon_h1, non-reentrant": {**QLORA, **HOOKS, "config": FALCON_H1, "targets": OF_FALCON_H1},
    "full, apertus": {"config": APERTUS},
    "lora, dropout, apertus, reentrant": {**LORA, **REENTRANT, "config": APERTUS, "targets": UNGATED, "dropout": 0.1},
    "qlora, apertus, non-reentrant, foreach": {**QLORA, **HOOKS, **FOREACH, "config": APERTUS, "targets": UNGATED},
    "lora, mistral3": {**LORA, "config": MISTRAL3},
    "lora, dropout, mistral3, ministral3, reentrant": {
        **LORA,
        **REENTRANT,
        "config": {**MISTRAL3, "text_config": MINISTRAL3},
        "dropout": 0.1,
    },
    "qlora, mistral3, non-reentrant": {**QLORA, **HOOKS, "config": MISTRAL3},
}
OF_VISION: dict[str, Any] = {
    "depth": 2,
    "embed_dim": 64,
    "hidden_size": 384,
    "num_heads": 4,
    "patch_size": 14,
    "spatial_merge_size": 2,
}
ENCODER: dict[str, Any] = {**OF_VISION, "hidden_size": 64, "intermediate_size": 96, "out_hidden_size": 384}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12]}}
QWEN2_VL = {
    "model_type": "qwen2_vl",
    "text_config": {**SIZES, **ROPE, "model_type": "qwen2_vl_text"},
    "vision_config": {**OF_VISION, "model_type": "qwen2_vl_vision"},
    "tie_word_embeddings": False,
}
QWEN2_5_VL = {
    "model_type": "qwen2_5_vl",
    "text_config": {**SIZES, **ROPE, "model_type": "qwen2_5_vl_text"},
    "vision_config": {**ENCODER, "model_type": "qwen2_5_vl_vision"},
    "tie_word_embeddings": False,
}
GLM4V = {
    "model_type": "glm4v",
    "text_config": {
        **SIZES,
        **TOKENS,
        "model_type": "glm4v_text",
        "rope_parameters": {**ROPE["rope_parameters"], "partial_rotary_factor": 0.5, "mrope_section": [4, 6, 6]},
    },
    "vision_config": {**ENCODER, "model_type": "glm4v_vision"},
    "tie_word_embeddings": False,
}
PADDLE: dict[str, Any] = {
    "model_type": "paddleocr_vl",
    "text_config": {**SIZES, **TOKENS, **ROPE, "model_type": "paddleocr_vl_text", "head_dim": 64},
    "vision_config": {**PIXTRAL, "model_type": "paddleocr_vl_vision"},
    "tie_word_embeddings": False,
}
AXES: dict[str, dict[str, Any]] = {
    "lora, qwen2_vl": {**LORA, "config": QWEN2_VL},
    "lora, dropout, qwen2_vl, reentrant, two micro-steps": {
        **LORA,
        **REENTRANT,
        "config": QWEN2_VL,
        "dropout": 0.05,
        "micro_steps": 2,
    },
    "qlora, qwen2_5_vl, non-reentrant": {**QLORA, **HOOKS, "config": QWEN2_5_VL},
    "lora, dropout, qwen2_5_vl, one row, reentrant": {
        **LORA,
        **REENTRANT,
        "config": QWEN2_5_VL,
        "dropout": 0.05,
        "rows": 1,
    },
    "lora, glm4v": {**LORA, "config": GLM4V, "targets": OF_GLM4},
    "qlora, dropout, glm4v, sdpa, one row, reentrant": {
        **QLORA,
        **REENTRANT,
        "attention": "sdpa",
        "rows": 1,
        "config": GLM4V,
        "targets": OF_GLM4,
        "dropout": 0.05,
    },
    "int8, glm4v, non-reentrant": {**INT8, **HOOKS, "config": GLM4V, "targets": OF_GLM4},
    "lora, dropout, paddleocr_vl, reentrant": {**LORA, **REENTRANT, "config": PADDLE, "dropout": 0.05},
    "int8, paddleocr_vl, non-reentrant": {**INT8, **HOOKS, "config": PADDLE},
}
QWEN3_5 = {
    "model_type": "qwen3_5_text",
    **SIZES,
    **TOKENS,
    "head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 48,
    "layer_types": ["linear_attention", "linear_attention", "full_attention"],
}
QWEN3_5_VL = {
    "model_type": "qwen3_5",
    "text_config": QWEN3_5,
    "vision_config": {**ENCODER, "model_type": "qwen3_5_vision"},
    "tie_word_embeddings": False,
}
OF_DELTA_NETS = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj")
DELTA_NETS: dict[str, dict[str, Any]] = {
    "full, qwen3_5": {"config": QWEN3_5},
    "full, qwen3_5, packed, one row": {"config": QWEN3_5, "packed": True, "rows": 1},
    "full, qwen3_5, as many keys, cut loss, non-reentrant, two micro-steps": {
        **CUT,
        **HOOKS,
        "config": {**QWEN3_5, "linear_num_key_heads": 4},
        "micro_steps": 2,
    },
    "full, qwen3_5, packed, reentrant, foreach": {**REENTRANT, **FOREACH, "config": QWEN3_5, "packed": True},
    "lora, dropout, qwen3_5, packed, reentrant": {
        **LORA,
        **REENTRANT,
        "config": QWEN3_5,
        "targets": (*EVERY, *OF_DELTA_NETS),
        "dropout": 0.05,
        "packed": True,
    },
    "lora, qwen3_5": {**LORA, "config": QWEN3_5, "targets": (*EVERY, *OF_DELTA_NETS)},
    "qlora, qwen3_5, packed, one row, non-reentrant": {
        **QLORA,
        **HOOKS,
        "config": QWEN3_5_VL,
        "targets": (*EVERY[:4], *EVERY[5:]),
        "packed": True,
        "rows": 1,
    },
    "lora, fused, dropout, qwen3_5, packed, reentrant": {
        **LORA,
        **REENTRANT,
        "config": QWEN3_5_VL,
        "kernels": KERNELS,
        "dropout": 0.05,
        "packed": True,
    },
    "int8, qwen3_5, packed, non-reentrant": {**INT8, **HOOKS, "config": QWEN3_5, "packed": True},
    "qlora, dropout, qwen3_5, reentrant": {
        **QLORA,
        **REENTRANT,
        "config": QWEN3_5,
        "targets": (*EVERY, *OF_DELTA_NETS),
        "dropout": 0.05,
    },
}
QWEN3_5_MOE = {
    **QWEN3_5,
    **ROUTED,
    "model_type": "qwen3_5_moe_text",
    "num_experts": 8,
    "shared_expert_intermediate_size": 160,
}
OLMOE = {"model_type": "olmoe", **SIZES, **TOKENS, "num_experts": 8, "num_experts_per_tok": 2}
MIXTRAL = {"model_type": "mixtral", **SIZES, **TOKENS, "num_local_experts": 4, "num_experts_per_tok": 2}
SOFTMAX: dict[str, dict[str, Any]] = {
    "full, qwen3_5_moe": {"config": QWEN3_5_MOE},
    "full, qwen3_5_moe, packed, reentrant, foreach": {**REENTRANT, **FOREACH, "config": QWEN3_5_MOE, "packed": True},
    "qlora, qwen3_5_moe, packed experts, packed, one row, non-reentrant": {
        **QLORA,
        **PACKED,
        **HOOKS,
        "config": QWEN3_5_MOE,
        "packed": True,
        "rows": 1,
    },
    "lora, dropout, qwen3_5_moe, reentrant": {
        **LORA,
        **REENTRANT,
        "config": QWEN3_5_MOE,
        "targets": EVERY[:4],
        "dropout": 0.05,
    },
    "full, olmoe, non-reentrant": {**HOOKS, "config": OLMOE},
    "qlora, dropout, olmoe, packed experts, non-reentrant": {
        **QLORA,
        **PACKED,
        **HOOKS,
        "config": OLMOE,
        "dropout": 0.05,
    },
    "full, mixtral": {"config": MIXTRAL},
    "lora, dropout, mixtral, reentrant": {
        **LORA,
        **REENTRANT,
        "config": MIXTRAL,
        "targets": EVERY[:4],
        "dropout": 0.05,
    },
}
NEMOTRON_H: dict[str, Any] = {
    "model_type": "nemotron_h",
    **{key: value for key, value in SIZES.items() if key != "num_hidden_layers"},
    **TOKENS,
    **ROUTED,
    "layers_block_type": ["mamba", "moe", "attention", "mamba", "moe"],
    "head_dim": 48,
    "mamba_num_heads": 10,
    "mamba_head_dim": 32,
    "ssm_state_size": 16,
    "n_groups": 2,
    "chunk_size": 64,
    "n_routed_experts": 8,
    "moe_shared_expert_intermediate_size": 160,
}
SINGLE: dict[str, dict[str, Any]] = {
    "qlora, nemotron_h, packed experts, reentrant": {**QLORA, **PACKED, **REENTRANT, "config": NEMOTRON_H},
    "qlora, dropout, nemotron_h, narrow packed experts, one row, non-reentrant": {
        **QLORA,
        **PACKED,
        **HOOKS,
        "config": {**NEMOTRON_H, "moe_latent_size": 128},
        "dropout": 0.05,
        "rows": 1,
    },
    "int8, nemotron_h, reentrant": {**INT8, **REENTRANT, "targets": EVERY[:4], "config": NEMOTRON_H},
}
TEXTS = AXES | DELTA_NETS | SOFTMAX | SINGLE
OF_GEMMA3 = {**GEMMA3_VISION, "vision_config": {**SIGLIP, "vision_use_head": False}}
LLAVA_LAST = {**LLAVA, "vision_feature_layer": -1}
SIGLIP2 = {
    **{key: value for key, value in PIXTRAL.items() if key != "image_size"},
    "model_type": "siglip2_vision_model",
    "patch_size": 16,
    "num_patches": 256,
    "vision_use_head": False,
}
LFM2_VL = {
    "model_type": "lfm2_vl",
    "text_config": LFM2,
    "vision_config": SIGLIP2,
    "projector_hidden_size": 160,
    "tie_word_embeddings": True,
}
OF_SMOLVLM = {
    **{key: value for key, value in PIXTRAL.items() if key != "head_dim"},
    "model_type": "smolvlm_vision",
    "image_size": 84,
}
SMOLVLM = {
    "model_type": "smolvlm",
    "text_config": LLAMA,
    "vision_config": OF_SMOLVLM,
    "scale_factor": 3,
    "image_token_id": 7,
    "tie_word_embeddings": False,
}
SEES = {"images": (1, 56, 56), "targets": r"model.language_model.layers.[\d]+.*_proj"}
SEEING: dict[str, dict[str, Any]] = {
    "lora, internvl sees, reentrant": {**LORA, **REENTRANT, **SEES, "config": INTERNVL},
    "lora, internvl sees": {**LORA, **SEES, "config": INTERNVL},
    "qlora, internvl sees tiles, cut loss, non-reentrant": {
        **QLORA,
        **HOOKS,
        **CUT,
        **SEES,
        "images": (1, 112, 56),
        "config": INTERNVL,
    },
    "qlora, dropout, internvl sees, upcast, reentrant": {
        **QLORA,
        **REENTRANT,
        **SEES,
        "config": INTERNVL,
        "upcast": True,
        "dropout": 0.1,
    },
    "lora, internvl sees by adapters, non-reentrant, two micro-steps": {
        **LORA,
        **HOOKS,
        **SEES,
        "config": INTERNVL,
        "targets": ("q_proj", "v_proj", "fc1"),
        "micro_steps": 2,
    },
    "lora, gemma3 sees, reentrant": {**LORA, **REENTRANT, **SEES, "config": OF_GEMMA3},
    "lora, gemma3 sees": {**LORA, **SEES, "config": OF_GEMMA3},
    "qlora, gemma3 sees, one row, upcast, non-reentrant": {
        **QLORA,
        **HOOKS,
        **SEES,
        "config": OF_GEMMA3,
        "rows": 1,
        "upcast": True,
    },
    "lora, dropout, lfm2_vl sees tiles, one row, reentrant": {
        **LORA,
        **REENTRANT,
        **SEES,
        **CUT,
        "config": LFM2_VL,
        "rows": 1,
        "length": 4096,
        "images": (1, 1024, 512),
        "dropout": 0.1,
    },
    "lora, lfm2_vl sees, one row, non-reentrant": {
        **LORA,
        **HOOKS,
        **SEES,
        "config": LFM2_VL,
        "rows": 1,
        "length": 512,
        "images": (1, 512, 512),
    },
    "lora, dropout, smolvlm sees, one row, reentrant": {
        **LORA,
        **REENTRANT,
        **SEES,
        "config": SMOLVLM,
        "rows": 1,
        "dropout": 0.1,
        "targets": r"model.text_model.layers.[\d]+.*_proj",
    },
    "lora, smolvlm sees, non-reentrant": {
        **LORA,
        **HOOKS,
        **SEES,
        "config": SMOLVLM,
        "targets": r"model.text_model.layers.[\d]+.*_proj",
    },
    "lora, dropout, llava sees, reentrant": {**LORA, **REENTRANT, **SEES, "config": LLAVA_LAST, "dropout": 0.1},
    "lora, llava sees": {**LORA, **SEES, "config": LLAVA_LAST, "images": (1, 140, 56)},
    "qlora, mistral3 sees, upcast, reentrant": {**QLORA, **REENTRANT, **SEES, "config": MISTRAL3, "upcast": True},
    "qlora, mistral3 sees two images, cut loss, one row, non-reentrant": {
        **QLORA,
        **HOOKS,
        **SEES,
        **CUT,
        "config": MISTRAL3,
        "rows": 1,
        "images": (2, 112, 56),
    },
}
WINDOWED: dict[str, Any] = {**ENCODER, "model_type": "qwen2_5_vl_vision", "fullatt_block_indexes": [1]}
QWEN2_5_SEES: dict[str, Any] = {**QWEN2_5_VL, "vision_config": WINDOWED}
BY_GRIDS: dict[str, dict[str, Any]] = {
    "lora, qwen2_vl sees, reentrant": {**LORA, **REENTRANT, **SEES, "config": QWEN2_VL, "images": (1, 112, 56)},
    "lora, dropout, qwen2_vl sees, non-reentrant": {
        **LORA,
        **HOOKS,
        **SEES,
        "config": QWEN2_VL,
        "images": (1, 112, 112),
        "dropout": 0.05,
    },
    "lora, qwen2_vl sees two images, two micro-steps": {
        **LORA,
        **SEES,
        "config": QWEN2_VL,
        "images": (2, 112, 56),
        "micro_steps": 2,
    },
    "qlora, qwen2_vl sees, one row, upcast, reentrant": {
        **QLORA,
        **REENTRANT,
        **SEES,
        "config": QWEN2_VL,
        "images": (1, 112, 112),
        "rows": 1,
        "upcast": True,
    },
    "lora, qwen2_5_vl sees, reentrant": {**LORA, **REENTRANT, **SEES, "config": QWEN2_5_SEES, "images": (1, 168, 112)},
    "lora, dropout, qwen2_5_vl sees, one row, non-reentrant": {
        **LORA,
        **HOOKS,
        **SEES,
        "config": QWEN2_5_SEES,
        "images": (1, 168, 168),
        "rows": 1,
        "dropout": 0.05,
    },
    "lora, qwen2_5_vl sees two images, two micro-steps": {
        **LORA,
        **SEES,
        "config": QWEN2_5_SEES,
        "images": (2, 112, 56),
        "micro_steps": 2,
    },
    "qlora, qwen2_5_vl sees, upcast, cut loss, reentrant": {
        **QLORA,
        **REENTRANT,
        **SEES,
        **CUT,
        "config": QWEN2_5_SEES,
        "images": (1, 168, 112),
        "upcast": True,
    },
}
GLM_SEES: dict[str, Any] = {**GLM4V, "vision_config": {**ENCODER, "model_type": "glm4v_vision", "image_size": 56}}
AT_WORDS = {"targets": r"model.language_model.layers.[\d]+.*_proj", "images": (1, 112, 56)}
WITHOUT_GRADIENTS: dict[str, dict[str, Any]] = {
    "lora, glm4v sees, reentrant": {**LORA, **REENTRANT, **AT_WORDS, "config": GLM_SEES},
    "lora, dropout, glm4v sees, non-reentrant": {**LORA, **HOOKS, **AT_WORDS, "config": GLM_SEES, "dropout": 0.05},
    "lora, glm4v sees two images, two micro-steps": {
        **LORA,
        **AT_WORDS,
        "config": GLM_SEES,
        "images": (2, 112, 56),
        "micro_steps": 2,
    },
    "qlora, glm4v sees, one row, upcast, reentrant": {
        **QLORA,
        **REENTRANT,
        **AT_WORDS,
        "config": GLM_SEES,
        "rows": 1,
        "upcast": True,
    },
}

MISTRAL4: dict[str, Any] = {
    **{key: value for key, value in GLM4_LITE.items() if key != "mlp_layer_types"},
    "model_type": "mistral4",
    "first_k_dense_replace": 1,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 128.0,
        "original_max_position_embeddings": 8192,
        "llama_4_scaling_beta": 0.1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
}
MISTRAL3_OF_4 = {**MISTRAL3, "text_config": MISTRAL4}
LATENT: dict[str, dict[str, Any]] = {
    "full, mistral4": {"config": MISTRAL4},
    "qlora, dropout, mistral4 with a tower, packed experts, reentrant": {
        **QLORA,
        **PACKED,
        **REENTRANT,
        "config": MISTRAL3_OF_4,
        "targets": ("o_proj",),
        "dropout": 0.05,
    },
}
ODDS = {"preferences": "orpo", "rows": 4}
UNPAIRED = {"preferences": "kto", "rows": 3}
MORE_PREFERRED: dict[str, dict[str, Any]] = {
    "odds, full, reentrant": {**REENTRANT, **ODDS},
    "odds, lora, dropout, one pair, two micro-steps": {**LORA, **ODDS, "dropout": 0.1, "rows": 2, "micro_steps": 2},
    "odds, qlora, padded, non-reentrant": {**QLORA, **HOOKS, **PADDED, **ODDS},
    "odds, int8, reentrant": {**INT8, **REENTRANT, **ODDS},
    "simpo, full, non-reentrant": {**HOOKS, **ODDS, "preferences": "simpo"},
    "simpo, qlora, padded, reentrant": {**QLORA, **REENTRANT, **PADDED, **ODDS, "preferences": "simpo"},
    "simpo with a cross-entropy, lora": {**LORA, **ODDS, "preferences": "simpo", "chosen": True},
    "unpaired, full, reentrant": {**REENTRANT, **UNPAIRED},
    "unpaired, lora, dropout, two micro-steps": {**LORA, **UNPAIRED, "dropout": 0.1, "micro_steps": 2},
    "unpaired, qlora, non-reentrant": {**QLORA, **HOOKS, **UNPAIRED},
    "unpaired, int8, padded, reentrant": {**INT8, **REENTRANT, **PADDED, **UNPAIRED},
}
REPLICAS = {"replicas": "usual"}
REPLICATED: dict[str, dict[str, Any]] = {
    "replicas, full": REPLICAS,
    "replicas, full, tied, reentrant, two micro-steps": {**REPLICAS, **REENTRANT, "config": TIED, "micro_steps": 2},
    "replicas, full, fp32 embeddings": {**REPLICAS, "fp32_embeddings": True, "optimizer": "adamw_torch"},
    "replicas, lora, dropout, non-reentrant": {**REPLICAS, **LORA, **HOOKS, "dropout": 0.1},
    "replicas, lora, fused, two micro-steps": {**REPLICAS, **LORA, "kernels": KERNELS, "micro_steps": 2},
    "replicas, qlora, reentrant": {**REPLICAS, **QLORA, **REENTRANT},
    "replicas, int8": {**REPLICAS, **INT8},
    "replicas, full, capped buckets, reentrant": {**REENTRANT, "replicas": "capped"},
    "replicas, full, unused looked for, fp32 embeddings": {"replicas": "finds unused", "fp32_embeddings": True},
    "replicas, qlora, unused looked for, two micro-steps": {**QLORA, "replicas": "finds unused", "micro_steps": 2},
}

SETTINGS = {
    name: {**BASE, **changes}
    for name, changes in (
        CHANGES
        | OF_FAMILIES
        | MORE_FAMILIES
        | TRAINED_MODULES
        | MASKED
        | PREFERRED
        | METHODS
        | OF_DECODERS
        | TEXTS
        | SEEING
        | BY_GRIDS
        | WITHOUT_GRADIENTS
        | LATENT
        | MORE_PREFERRED
        | REPLICATED
    ).items()
}
