"""Dense decoders of the Llama kind: one table row a model type."""

from __future__ import annotations

from functools import partial

from advisor.models.attention import fused_softmax, softmax
from advisor.models.family import SANDWICH, Family, full_plan, plain_plan
from advisor.models.mlp import fused, gated, plain

_GLM4 = ("input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm")
_POST = ("post_attention_layernorm", "post_feedforward_layernorm")
_BIASED = softmax(bias="attention_bias")
_QUERY_KEY_VALUE_BIAS = softmax(bias=True, out_bias=False)
_HEAD_NORM = softmax(bias="attention_bias", query_key_norm="head")

FAMILIES: dict[str, Family] = {
    "llama": Family(_BIASED, gated(bias="mlp_bias")),
    "mistral": Family(plan=plain_plan),
    "ministral": Family(plan=plain_plan),
    "ministral3": Family(plan=plain_plan),
    "cwm": Family(_BIASED, gated(bias="mlp_bias"), partial(plain_plan, every=4)),
    "ernie4_5": Family(softmax(bias="use_bias"), gated(bias="use_bias")),
    "helium": Family(softmax(bias="attention_bias", out_bias=False), gated(bias="mlp_bias")),
    "qwen2": Family(_QUERY_KEY_VALUE_BIAS, plan=plain_plan),
    "qwen2_vl_text": Family(_QUERY_KEY_VALUE_BIAS, plan=plain_plan),
    "qwen2_5_vl_text": Family(_QUERY_KEY_VALUE_BIAS, plan=plain_plan),
    "qwen3": Family(_HEAD_NORM, plan=plain_plan),
    "qwen3_vl_text": Family(_HEAD_NORM),
    "mimo": Family(softmax(bias="attention_bias", out_bias=False), plan=plain_plan),
    "seed_oss": Family(softmax(bias="attention_bias", out_bias="attention_out_bias"), gated(bias="mlp_bias")),
    "smollm3": Family(_BIASED, gated(bias="mlp_bias"), plain_plan),
    "granite": Family(_BIASED, gated(bias="mlp_bias")),
    "arcee": Family(_BIASED, plain(bias="mlp_bias")),
    "apertus": Family(
        _HEAD_NORM,
        plain(beside=("mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n")),
        norms=("attention_layernorm", "feedforward_layernorm"),
    ),
    "hunyuan_v1_dense": Family(
        softmax(bias="attention_bias", query_key_norm="head", norm_names=("query_layernorm", "key_layernorm")),
    ),
    "exaone4": Family(softmax(query_key_norm="head"), plan=partial(plain_plan, every=4), norms=_POST),
    "olmo": Family(_BIASED, norm="layer", weightless=True),
    "olmo2": Family(softmax(bias="attention_bias", query_key_norm="width"), norms=_POST),
    "olmo3": Family(
        softmax(bias="attention_bias", query_key_norm="width"), plan=partial(plain_plan, every=4), norms=_POST
    ),
    "cohere": Family(
        softmax(bias="attention_bias", query_key_norm="per-head", norm_key="use_qk_norm"),
        norms=("input_layernorm",),
        norm="layer",
    ),
    "cohere2": Family(_BIASED, plan=partial(plain_plan, every=4), norms=("input_layernorm",), norm="layer"),
    "gemma": Family(_BIASED),
    "gemma2": Family(_BIASED, plan=partial(plain_plan, every=2), norms=SANDWICH),
    "vaultgemma": Family(
        _BIASED, plan=partial(plain_plan, every=2), norms=("input_layernorm", "pre_feedforward_layernorm")
    ),
    "gemma3_text": Family(_HEAD_NORM, plan=partial(plain_plan, every=6), norms=SANDWICH),
    "phi3": Family(fused_softmax("self_attn.qkv_proj", "self_attn.o_proj"), fused(), plain_plan),
    "glm": Family(softmax(bias="attention_bias", out_bias=False), fused()),
    "glm4": Family(softmax(bias="attention_bias", out_bias=False), fused(), norms=_GLM4),
    "glm4v_text": Family(_QUERY_KEY_VALUE_BIAS, fused(), norms=_GLM4),
    "stablelm": Family(softmax(bias="use_qkv_bias", out_bias=False), norm="layer", norm_bias=True),
    "starcoder2": Family(
        softmax(bias="use_bias"),
        plain("mlp.c_fc", "mlp.c_proj", bias="use_bias"),
        plain_plan,
        norm="layer",
        norm_bias=True,
    ),
    "nemotron": Family(_BIASED, plain(bias="mlp_bias"), norm="layer", norm_bias=True),
    "phi": Family(
        softmax(bias=True, names=("q_proj", "k_proj", "v_proj", "dense")),
        plain("mlp.fc1", "mlp.fc2", bias=True),
        norms=("input_layernorm",),
        norm="layer",
        norm_bias=True,
        final_norm="final_layernorm",
        head_bias=True,
    ),
    "internlm2": Family(
        fused_softmax("attention.wqkv", "attention.wo", bias="bias"),
        gated("feed_forward", names=("w1", "w3", "w2")),
        norms=("attention_norm", "ffn_norm"),
        embedding="tok_embeddings",
        head="output",
        plan=full_plan,
    ),
    "baichuan": Family(fused_softmax("self_attn.W_pack", "self_attn.o_proj")),
}
