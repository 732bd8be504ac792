"""The GPT lineage before Llama: learned positions, LayerNorm, fused projections, parallel blocks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from advisor.models.attention import fused_softmax, softmax
from advisor.models.blocks import Mlp
from advisor.models.config import Config
from advisor.models.decoder import Decoder
from advisor.models.family import Family, Taped
from advisor.models.layer_variant import LayerVariant, with_tanh_gelu
from advisor.models.mlp import gated, plain
from advisor.models.parts import Layer, Part, Tensors, linear, loose, norm


def _learned_positions(c: Config) -> Tensors:
    """A table of one vector a position (GPT-2)."""
    return loose("wpe.weight", (c.size("max_position_embeddings"), c.hidden), "embedding")


def _falcon_attention(c: Config, layer: Layer) -> Part:
    """Falcon: one key and value head (multi-query), ``num_kv_heads`` of them (new architecture), or all."""
    new, multi = c.flag("new_decoder_architecture"), c.flag("multi_query", True)
    kv_heads = c.kv_heads if new else 1 if multi else c.heads
    inner = Config({**c.values, "num_key_value_heads": kv_heads}, c.model_type, c.name)
    bias = c.flag("bias")
    return fused_softmax("self_attention.query_key_value", "self_attention.dense", bias=bias)(inner, layer)


def _falcon_norms(c: Config) -> tuple[str, ...]:
    """Falcon's normalisations: two in the new architecture, one in a parallel block, two in a serial one."""
    if c.flag("new_decoder_architecture"):
        return ("ln_attn", "ln_mlp") if c.maybe("num_ln_in_parallel_attn") != 1 else ("input_layernorm",)
    parallel = c.flag("parallel_attn", True)
    return ("input_layernorm",) if parallel else ("post_attention_layernorm", "input_layernorm")


def _bigcode_attention(c: Config, layer: Layer) -> Part:
    """StarCoder's attention: one key and value head unless ``multi_query`` is off."""
    kv_heads = 1 if c.flag("multi_query", True) else c.heads
    inner = Config({**c.values, "num_key_value_heads": kv_heads}, c.model_type, c.name)
    return fused_softmax("attn.c_attn", "attn.c_proj", bias=True)(inner, layer)


def _neo_plan(c: Config) -> list[Layer]:
    """GPT-Neo: ``attention_types`` spells global and local layers; local ones see ``window_size`` tokens."""
    value = c.get("attention_types")
    spelt = cast("list[tuple[list[str], int]]", value) if isinstance(value, list) else [(["global"], c.layers)]
    kinds = [kind for pattern, times in spelt for kind in pattern * times]
    local = c.size("window_size", 256)
    return [Layer(window=local if kind == "local" else None) for kind in kinds[: c.layers]]


def _opt_outside(c: Config) -> Tensors:
    """OPT: positions start at 2; 350m has its embedding projected in and out."""
    hidden, width = c.hidden, c.size("word_embed_proj_dim", c.hidden)
    tensors = loose("embed_positions.weight", (c.size("max_position_embeddings") + 2, hidden), "embedding")
    if width != hidden:
        tensors += (
            *linear("project_out", hidden, width, "other"),
            *linear("project_in", width, hidden, "other"),
        )
    if c.flag("do_layer_norm_before", True) and not c.flag("_remove_final_layer_norm"):
        tensors += norm("final_layer_norm", hidden, True)
    return tensors


def _qwen_mlp(c: Config, layer: Layer) -> Part:
    """The first Qwen: ``intermediate_size`` counts both halves of the gated MLP."""
    inner = Config({**c.values, "intermediate_size": c.size("intermediate_size") // 2}, c.model_type, c.name)
    return gated("mlp", names=("w1", "w2", "c_proj"))(inner, layer)


def _qwen_attention(c: Config, layer: Layer) -> Part:
    """The first Qwen: ``kv_channels`` a head, bias on the fused projection alone."""
    inner = Config({**c.values, "head_dim": c.maybe("kv_channels")}, c.model_type, c.name)
    return fused_softmax("attn.c_attn", "attn.c_proj", bias=True, out_bias=False)(inner, layer)


def _chatglm_attention(c: Config, layer: Layer) -> Part:
    """ChatGLM2 and 3: grouped queries where ``multi_query_attention`` is set."""
    kv_heads = c.kv_heads if c.flag("multi_query_attention") else c.heads
    values = {**c.values, "num_key_value_heads": kv_heads, "head_dim": c.maybe("kv_channels")}
    inner = Config(values, c.model_type, c.name)
    return fused_softmax(
        "self_attention.query_key_value",
        "self_attention.dense",
        bias="add_qkv_bias",
        out_bias="add_bias_linear",
    )(inner, layer)


def _chatglm_mlp(c: Config, _: Layer) -> Part:
    """ChatGLM's gated MLP, both halves in one linear."""
    width, bias = c.size("intermediate_size"), c.flag("add_bias_linear")
    up, down = "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"
    tensors = (*linear(up, c.hidden, 2 * width, "mlp", bias), *linear(down, width, c.hidden, "mlp", bias))
    return Part(tensors, mlp=Mlp(width))


def _dbrx_attention(c: Config, layer: Layer) -> Part:
    """DBRX: key and value heads stand in ``attn_config``."""
    inner = flattened(c, "attn_config", {"kv_n_heads": "num_key_value_heads"})
    return fused_softmax("norm_attn_norm.attn.Wqkv", "norm_attn_norm.attn.out_proj")(inner, layer)


def _dbrx_mlp(c: Config, _: Layer) -> Part:
    """DBRX: the experts' matrices lie below each other in three two-dimensional parameters."""
    inner = flattened(c, "ffn_config", {"ffn_hidden_size": "intermediate_size"})
    hidden, width, experts = c.hidden, inner.size("intermediate_size"), inner.experts
    stacked = (
        t for name in ("w1", "v1", "w2") for t in loose(f"ffn.experts.mlp.{name}", (experts * width, hidden), "experts")
    )
    tensors = (*linear("ffn.router.layer", hidden, experts, "router"), *stacked)
    return Part(tensors, mlp=Mlp(width, True, experts, inner.size("num_experts_per_tok")))


def flattened(c: Config, key: str, renamed: Mapping[str, str]) -> Config:
    """The config with a nested section's keys next to its own."""
    section = c.section(key)
    nested = {} if section is None else {renamed.get(name, name): value for name, value in section.values.items()}
    return Config({**c.values, **nested}, c.model_type, c.name)


_NEOX_MLP = plain("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", bias=True)
_TWO_NORMS = ("ln_1", "ln_2")
_GPT = partial(
    Decoder,
    norm="layer",
    norm_bias=True,
    root="transformer",
    embedding="wte",
    stack="h",
    final_norm="ln_f",
)
_STARCODER_MLP = plain("mlp.c_fc", "mlp.c_proj", bias=True)

FAMILIES: dict[str, Family] = {
    "gpt2": Family(
        _GPT(
            # Stored as transformers' Conv1D, (in, out); LoRA and bitsandbytes treat it as a linear layer.
            fused_softmax("attn.c_attn", "attn.c_proj", bias=True),
            _STARCODER_MLP,
            norms=_TWO_NORMS,
            outside=_learned_positions,
            variant=with_tanh_gelu(residual_masks=2, rotates=False),
        ),
        lora_kernels="unpatchable",
        xformers="asks for key heads",
    ),
    "gpt_bigcode": Family(
        _GPT(
            _bigcode_attention,
            _STARCODER_MLP,
            norms=_TWO_NORMS,
            outside=_learned_positions,
            variant=LayerVariant(residual_masks=2, rotates=False),
        ),
        lora_kernels="unpatchable",
        common_loss_since="4.49.0",
        keeps_cache_until="4.53.0",
    ),
    "gpt_neo": Family(
        _GPT(
            softmax("attn.attention", out_bias=True, names=("q_proj", "k_proj", "v_proj", "out_proj")),
            _STARCODER_MLP,
            _neo_plan,
            norms=_TWO_NORMS,
            outside=_learned_positions,
        ),
        lora_kernels="unpatchable",
        sdpa=False,
        xformers="has no class",
    ),
    "gptj": Family(
        _GPT(
            softmax("attn", names=("q_proj", "k_proj", "v_proj", "out_proj")),
            plain("mlp.fc_in", "mlp.fc_out", bias=True),
            norms=("ln_1",),
            head_bias=True,
            variant=with_tanh_gelu(rotary=2),
        ),
        lora_kernels="unpatchable",
        sdpa=False,
        xformers="has no class",
    ),
    "gpt_neox": Family(
        Decoder(
            fused_softmax("attention.query_key_value", "attention.dense", bias="attention_bias"),
            _NEOX_MLP,
            norm="layer",
            norm_bias=True,
            root="gpt_neox",
            embedding="embed_in",
            final_norm="final_layer_norm",
            variant=LayerVariant(fresh_query=True, parallel=True),
        ),
        lora_kernels="unpatchable",
        embedding_modules=("embed_in", "embed_out"),
        has_tapes=True,
        tape=Taped(joins="both", splits=True, norms_first=True),
        xformers="asks for key heads",
    ),
    "bloom": Family(
        _GPT(
            fused_softmax("self_attention.query_key_value", "self_attention.dense", bias=True),
            _NEOX_MLP,
            embedding="word_embeddings",
            outside=lambda c: norm("word_embeddings_layernorm", c.hidden, True),
        ),
        lora_kernels="unpatchable",
        sdpa=False,
        flash_attention=False,
    ),
    "falcon": Family(
        _GPT(
            _falcon_attention,
            plain("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", bias="bias"),
            layer_norms=_falcon_norms,
            embedding="word_embeddings",
            variant=LayerVariant(parallel=True, always_masked=True),
        ),
        lora_kernels="unpatchable",
        embedding_modules=("word_embeddings", "lm_head"),
        xformers="has no class",
    ),
    "opt": Family(
        Decoder(
            softmax(bias="enable_bias", names=("q_proj", "k_proj", "v_proj", "out_proj")),
            plain("fc1", "fc2", bias="enable_bias"),
            norms=("self_attn_layer_norm", "final_layer_norm"),
            norm="layer",
            norm_bias=True,
            root="model.decoder",
            final_norm="",
            outside=_opt_outside,
            embedding_width="word_embed_proj_dim",
        ),
        lora_kernels="unpatchable",
        xformers="asks for key heads",
    ),
    "mpt": Family(
        Decoder(
            fused_softmax("attn.Wqkv", "attn.out_proj"),
            plain("ffn.up_proj", "ffn.down_proj"),
            norms=("norm_1", "norm_2"),
            norm="layer",
            root="transformer",
            embedding="wte",
            stack="blocks",
            final_norm="norm_f",
        ),
        lora_kernels="unpatchable",
        sdpa=False,
        flash_attention=False,
        checkpoints="none",
        head_module=False,
    ),
    "dbrx": Family(
        Decoder(
            _dbrx_attention,
            _dbrx_mlp,
            norms=("norm_attn_norm.norm_1", "norm_attn_norm.norm_2"),
            norm="layer",
            root="transformer",
            embedding="wte",
            stack="blocks",
            final_norm="norm_f",
        ),
        lora_kernels="unpatchable",
    ),
    "replit_lm": Family(
        Decoder(
            fused_softmax("attn.Wqkv", "attn.out_proj"),
            plain("mlp.mlp_up", "mlp.mlp_down"),
            norms=_TWO_NORMS,
            norm="layer",
            root="transformer",
            embedding="wte",
            stack="blocks",
            final_norm="ln_f",
        ),
        lora_kernels="unpatchable",
        sdpa=False,
        flash_attention=False,
        head_module=False,
    ),
    "qwen": Family(
        Decoder(
            _qwen_attention,
            _qwen_mlp,
            norms=_TWO_NORMS,
            root="transformer",
            embedding="wte",
            stack="h",
            final_norm="ln_f",
        ),
        upcast_for_lora=False,
    ),
    "chatglm": Family(
        Decoder(
            _chatglm_attention,
            _chatglm_mlp,
            root="transformer",
            embedding="embedding.word_embeddings",
            stack="encoder.layers",
            final_norm="encoder.final_layernorm",
            head="transformer.output_layer",
        )
    ),
}
