# pyright: basic
"""Small configs of real families, in which no two tensors share a width by accident, and runs to train them."""

from collections.abc import Callable
from typing import Any, cast

import torch
import transformers
from transformers import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from advisor.models import Architecture, describe
from advisor.models.family import table
from advisor.record import replace
from advisor.run import AttentionKernel, Lora, Run
from advisor.run.stack import Stack

from .trace import Setting

Make = Callable[[int], PretrainedConfig]

HEADS: dict[str, Any] = {
    "hidden_size": 192,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 640,
}
WIDE_HEADS: dict[str, Any] = {**HEADS, "head_dim": 48}
PLAIN: dict[str, Any] = {"hidden_size": 192, "num_attention_heads": 6, "intermediate_size": 640}
EXPERTS: dict[str, Any] = {"num_local_experts": 8, "num_experts_per_tok": 2}
GPT2: dict[str, Any] = {"n_embd": 192, "n_head": 6, "n_inner": 640}


def family(name: str, layers: str = "num_hidden_layers", full: bool = False, **widths: Any) -> Make:
    """A config of a family by its number of layers; ``full``: full attention in each of them."""

    def make(count: int) -> PretrainedConfig:
        kinds = {"layer_types": ["full_attention"] * count} if full else {}
        config = getattr(transformers, name)
        return config(**{layers: count}, vocab_size=64, tie_word_embeddings=False, **kinds, **widths)

    return make


BY_HAND: dict[str, Make] = {
    "mistral": family("MistralConfig", **WIDE_HEADS, sliding_window=None),
    "mistral with a window": family("MistralConfig", **WIDE_HEADS, sliding_window=64),
    "llama": family("LlamaConfig", **HEADS),
    "qwen2": family("Qwen2Config", **HEADS),
    "qwen3": family("Qwen3Config", **WIDE_HEADS),
    "gemma": family("GemmaConfig", **WIDE_HEADS),
    "gemma2": family("Gemma2Config", full=True, **WIDE_HEADS),
    "gemma3": family("Gemma3TextConfig", full=True, **WIDE_HEADS),
    "phi3": family("Phi3Config", **HEADS, pad_token_id=0),
    "phi": family("PhiConfig", **HEADS),
    "gpt_neox": family("GPTNeoXConfig", **PLAIN),
    "gpt2": family("GPT2Config", layers="n_layer", **GPT2),
    "gpt_bigcode": family("GPTBigCodeConfig", layers="n_layer", **GPT2),
    "falcon": family("FalconConfig", hidden_size=192, num_attention_heads=6, ffn_hidden_size=640),
    "falcon 40b": family(
        "FalconConfig",
        hidden_size=192,
        num_attention_heads=6,
        ffn_hidden_size=640,
        new_decoder_architecture=True,
        num_kv_heads=2,
    ),
    "starcoder2": family("Starcoder2Config", **HEADS, sliding_window=None, residual_dropout=0.1),
    "seed_oss": family("SeedOssConfig", **WIDE_HEADS),
    "olmo": family("OlmoConfig", **HEADS),
    "olmo2": family("Olmo2Config", **HEADS),
    "exaone4": family("Exaone4Config", full=True, **HEADS),
    "granite": family("GraniteConfig", **HEADS),
    "cohere": family("CohereConfig", **HEADS),
    "cohere2": family("Cohere2Config", full=True, **HEADS),
    "glm": family("GlmConfig", **WIDE_HEADS, pad_token_id=0),
    "glm4": family("Glm4Config", **WIDE_HEADS, pad_token_id=0),
    "stablelm": family("StableLmConfig", **HEADS),
    "nemotron": family("NemotronConfig", **HEADS),
    "smollm3": family("SmolLM3Config", **HEADS, pad_token_id=0),
    "bloom": family("BloomConfig", layers="n_layer", hidden_size=192, n_head=6),
    "mixtral": family("MixtralConfig", **HEADS, **EXPERTS, sliding_window=None),
    "qwen3_moe": family(
        "Qwen3MoeConfig",
        **WIDE_HEADS,
        moe_intermediate_size=112,
        num_experts=8,
        num_experts_per_tok=2,
        norm_topk_prob=True,
    ),
    "gpt_oss": family("GptOssConfig", full=True, **WIDE_HEADS, **EXPERTS),
    "deepseek_v3": family(
        "DeepseekV3Config",
        hidden_size=192,
        num_attention_heads=6,
        num_key_value_heads=6,
        intermediate_size=640,
        moe_intermediate_size=112,
        n_routed_experts=8,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
        q_lora_rank=80,
        kv_lora_rank=72,
        qk_nope_head_dim=32,
        qk_rope_head_dim=16,
        v_head_dim=40,
        first_k_dense_replace=0,
    ),
}
NOT_TRACED = {
    "apertus": "has weights in its activation: test_layers.py traces it",
    "ernie4_5": "rotates interleaved queries and keys, which keeps a twentieth more",
    "helium": "rotates interleaved queries and keys",
    "ministral3": "scales its queries by position: two bytes a token",
}
"""Dense decoders of which the formulas do not know everything."""


def small(model_type: str) -> Make:
    """A config of a dense decoder, by the names that Llama's has too."""

    def make(count: int) -> PretrainedConfig:
        made = CONFIG_MAPPING[model_type]
        wanted = {**WIDE_HEADS, "pad_token_id": 0, "layer_types": ["full_attention"] * count}
        widths = {key: value for key, value in wanted.items() if hasattr(made, key)}
        return made(num_hidden_layers=count, vocab_size=64, tie_word_embeddings=False, **widths)

    return make


def dense() -> list[str]:
    """The dense decoders that transformers has and no config above stands for."""
    there = {make(1).model_type for make in BY_HAND.values()} | set(NOT_TRACED)
    return [one for one in table("dense") if one in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and one not in there]


FAMILIES: dict[str, Make] = {**BY_HAND, **{one: small(one) for one in dense()}}
EAGER = {"gemma2", "gpt_oss", "bloom"}
"""Families that sdpa does not serve: a score cap, sinks, ALiBi."""


def described(make: Make, layers: int = 3) -> Architecture:
    """What the advisor knows of the config."""
    return describe(make(layers).to_dict(), "traced", "test")


def run_of(model: Architecture, setting: Setting, rows: int = 1, length: int = 256, **facts: Any) -> Run:
    """The run that a traced setting stands for."""
    single = setting.weights == torch.float32
    stack = replace(facts.pop("stack", Stack(padding="full")), base_dtype="float32" if single else None)
    return Run(
        config=cast("Any", {}),
        deepspeed=None,
        model=model,
        hardware=None,
        stack=stack,
        precision="fp32" if single and not setting.autocast else "bf16",
        autocast=setting.autocast,
        adapter="lora" if setting.adapter else None,
        lora=lora_of(setting) if setting.adapter else None,
        quantization=None if setting.casts_inputs else "nf4",
        micro_batch_size=rows,
        sequence_len=length,
        pads_to_sequence_len=setting.padding_mask,
        attention=cast("AttentionKernel", setting.attention),
        activation_checkpointing=setting.checkpointing is not None,
        reentrant=setting.checkpointing == "reentrant",
        **facts,
    )


def lora_of(setting: Setting) -> Lora:
    """The adapter of a traced setting."""
    named = isinstance(setting.adapter, tuple)
    return Lora(
        rank=setting.rank,
        alpha=32,
        dropout=setting.dropout,
        targets=cast("tuple[str, ...]", setting.adapter) if named else (),
        target_linear=not named,
        fp32=setting.adapter_fp32,
        dora=setting.dora,
    )
