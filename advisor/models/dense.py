"""Dense decoders of the Llama kind: one table row a model type."""

from __future__ import annotations

from functools import partial

from advisor.models.attention import fused_softmax, softmax
from advisor.models.decoder import SANDWICH, Decoder, full_plan, plain_plan
from advisor.models.family import LIGER, LIGER_LAYERS, LIGER_LOSS, LIGER_WITHOUT_ROPE, Family, Taped
from advisor.models.layer_variant import (
    FRESH_QUERY,
    OFFSET,
    XIELU,
    XIELU_FORWARD,
    XIELU_GRADIENT,
    XIELU_TRAINED,
    LayerVariant,
    with_squared_relu,
    with_tanh_gelu,
)
from advisor.models.mlp import fused, gated, plain

_GLM4 = ("input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm")
_POST = ("post_attention_layernorm", "post_feedforward_layernorm")
_BIASED = softmax(bias="attention_bias")
_QUERY_KEY_VALUE_BIAS = softmax(bias=True, out_bias=False)
_HEAD_NORM = softmax(bias="attention_bias", query_key_norm="head")
_SECTIONS = LayerVariant(rotary=4)
"""Cosines and sines of time, height and width, which each layer joins: models/qwen2_vl, Qwen2VLAttention.forward."""
_AXES = Taped(tables="sections", axes="apart", heads_last=True)

FAMILIES: dict[str, Family] = {
    "llama": Family(
        Decoder(_BIASED, gated(bias="mlp_bias")), liger=LIGER, cut=True, has_tapes=True, has_liger_tapes=True
    ),
    "mistral": Family(Decoder(plan=plain_plan), liger=LIGER, cut=True, has_tapes=True, has_liger_tapes=True),
    "ministral": Family(Decoder(plan=plain_plan), liger=LIGER, cut=True),
    "ministral3": Family(
        Decoder(plan=plain_plan), liger=LIGER_LAYERS, cut=True, has_tapes=True, tape=Taped(scales_queries=True)
    ),
    "cwm": Family(Decoder(_BIASED, gated(bias="mlp_bias"), partial(plain_plan, every=4)), has_tapes=True),
    "ernie4_5": Family(
        Decoder(softmax(bias="use_bias"), gated(bias="use_bias"), variant=LayerVariant(rotary=8)),
    ),
    "paddleocr_vl_text": Family(
        Decoder(softmax(bias="use_bias"), gated(bias="use_bias"), variant=_SECTIONS),
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=_AXES,
    ),
    "helium": Family(
        Decoder(
            softmax(bias="attention_bias", out_bias=False),
            gated(bias="mlp_bias"),
            variant=LayerVariant(norm="fp32 rms", rotary=4),
        )
    ),
    "qwen2": Family(
        Decoder(_QUERY_KEY_VALUE_BIAS, plan=plain_plan), liger=LIGER, cut=True, has_tapes=True, has_liger_tapes=True
    ),
    "qwen2_vl_text": Family(
        Decoder(_QUERY_KEY_VALUE_BIAS, plan=plain_plan, variant=_SECTIONS),
        liger=LIGER_LAYERS,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=_AXES,
    ),
    "qwen2_5_vl_text": Family(
        Decoder(_QUERY_KEY_VALUE_BIAS, plan=plain_plan, variant=_SECTIONS),
        liger=LIGER_LAYERS,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=_AXES,
    ),
    "qwen3": Family(Decoder(_HEAD_NORM, plan=plain_plan), liger=LIGER, cut=True, has_tapes=True, has_liger_tapes=True),
    "qwen3_vl_text": Family(Decoder(_HEAD_NORM), liger=LIGER_LAYERS - {"glu"}, lora_kernels="unpatchable"),
    "mimo": Family(Decoder(softmax(bias="attention_bias", out_bias=False), plan=plain_plan), has_tapes=True),
    "seed_oss": Family(
        Decoder(
            softmax(bias="attention_bias", out_bias="attention_out_bias"),
            gated(bias="mlp_bias"),
            variant=LayerVariant(residual_masks=2),
        ),
        cut=True,
        has_tapes=True,
    ),
    "smollm3": Family(Decoder(_BIASED, gated(bias="mlp_bias"), plain_plan), liger=LIGER, cut=True, has_tapes=True),
    "granite": Family(
        Decoder(_BIASED, gated(bias="mlp_bias"), variant=LayerVariant(scales_residual=True)),
        liger=LIGER_LAYERS,
        cut=True,
        scales_logits=True,
        has_tapes=True,
        tape=Taped(scales_embedding="after"),
    ),
    "arcee": Family(
        Decoder(
            _BIASED,
            plain(bias="mlp_bias"),
            variant=with_squared_relu(),
        ),
        cut=True,
        has_tapes=True,
    ),
    "apertus": Family(
        Decoder(
            _HEAD_NORM,
            plain(loose_names=("mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n")),
            norms=("attention_layernorm", "feedforward_layernorm"),
            variant=LayerVariant(
                activation=XIELU,
                activation_trained=XIELU_TRAINED,
                activation_gradient=XIELU_GRADIENT,
                activation_forward=XIELU_FORWARD,
            ),
        ),
        cut=True,
        has_tapes=True,
        tape=Taped(norms="in turn"),
    ),
    "hunyuan_v1_dense": Family(
        Decoder(
            softmax(bias="attention_bias", query_key_norm="head", norm_names=("query_layernorm", "key_layernorm")),
        ),
        liger=LIGER,
        cut=True,
        has_tapes=True,
        tape=Taped(norms="after rotation"),
    ),
    "exaone4": Family(
        Decoder(
            softmax(query_key_norm="head"),
            plan=partial(plain_plan, every=4),
            norms=_POST,
            variant=LayerVariant(post_norm=True),
        ),
        liger=LIGER,
        cut=True,
    ),
    "olmo": Family(
        Decoder(_BIASED, norm="layer", weightless=True, variant=LayerVariant(norm="fp32 layer")),
        cut=True,
        lora_kernels="unpatchable",
    ),
    "olmo2": Family(
        Decoder(
            softmax(bias="attention_bias", query_key_norm="width"),
            norms=_POST,
            variant=LayerVariant(norm="fp32 rms", wide_query_key_norm=True, post_norm=True),
        ),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(norms="before heads", heads_last=True, tables="fp32"),
    ),
    "olmo3": Family(
        Decoder(
            softmax(bias="attention_bias", query_key_norm="width"),
            plan=partial(plain_plan, every=4),
            norms=_POST,
            variant=LayerVariant(norm="fp32 rms", wide_query_key_norm=True, post_norm=True),
        ),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(norms="before heads", heads_last=True, tables="fp32", tables_by_kind=True),
    ),
    "cohere": Family(
        Decoder(
            softmax(bias="attention_bias", query_key_norm="per-head", norm_key="use_qk_norm"),
            norms=("input_layernorm",),
            norm="layer",
            variant=LayerVariant(norm="centred"),
        ),
        cut=True,
        scales_logits=True,
        lora_kernels="unpatchable",
    ),
    "cohere2": Family(
        Decoder(
            _BIASED,
            plan=partial(plain_plan, every=4),
            norms=("input_layernorm",),
            norm="layer",
            variant=LayerVariant(norm="centred"),
        ),
        cut=True,
        scales_logits=True,
    ),
    "gemma": Family(
        Decoder(_BIASED, variant=OFFSET),
        liger=LIGER,
        cut=True,
        has_tapes=True,
        has_liger_tapes=True,
        tape=Taped(scales_embedding="inside"),
    ),
    "gemma2": Family(
        Decoder(_BIASED, plan=partial(plain_plan, every=2), norms=SANDWICH, variant=OFFSET),
        liger=LIGER,
        cut=True,
        soft_capped=True,
        has_tapes=True,
        has_liger_tapes=True,
        tape=Taped(scales_embedding="inside"),
    ),
    "vaultgemma": Family(
        Decoder(
            _BIASED,
            plan=partial(plain_plan, every=2),
            norms=("input_layernorm", "pre_feedforward_layernorm"),
            variant=OFFSET,
        ),
        soft_capped=True,
    ),
    "gemma3_text": Family(
        Decoder(_HEAD_NORM, plan=partial(plain_plan, every=6), norms=SANDWICH, variant=OFFSET),
        liger=LIGER,
        cut=True,
        has_tapes=True,
        tape=Taped(norms="in turn", scales_embedding="inside", tables_by_kind=True),
    ),
    "phi3": Family(
        Decoder(fused_softmax("self_attn.qkv_proj", "self_attn.o_proj"), fused(), plain_plan, variant=FRESH_QUERY),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(joins="each", output_first=True),
    ),
    "glm": Family(
        Decoder(
            softmax(bias="attention_bias", out_bias=False), fused(), variant=LayerVariant(fresh_query=True, rotary=2)
        ),
        cut=True,
    ),
    "glm4": Family(
        Decoder(
            softmax(bias="attention_bias", out_bias=False),
            fused(),
            norms=_GLM4,
            variant=LayerVariant(fresh_query=True, rotary=2),
        ),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        has_tapes=True,
        tape=Taped(joins="both", tables="interleaved"),
    ),
    "glm4v_text": Family(
        Decoder(_QUERY_KEY_VALUE_BIAS, fused(), norms=_GLM4, variant=LayerVariant(fresh_query=True, rotary=4)),
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(joins="both", tables="interleaved", axes="joined", heads_last=True),
    ),
    "stablelm": Family(
        Decoder(softmax(bias="use_qkv_bias", out_bias=False), norm="layer", norm_bias=True, variant=FRESH_QUERY),
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(joins="both kept", heads_last=True, holds=True),
    ),
    "starcoder2": Family(
        Decoder(
            softmax(bias="use_bias"),
            plain("mlp.c_fc", "mlp.c_proj", bias="use_bias"),
            plain_plan,
            norm="layer",
            norm_bias=True,
            variant=LayerVariant(residual_masks=2),
        ),
        lora_kernels="need half-precision norms",
        has_tapes=True,
    ),
    "jais2": Family(
        Decoder(
            _BIASED,
            plain(bias="mlp_bias"),
            norm="layer",
            norm_bias=True,
            variant=with_squared_relu(),
        ),
        lora_kernels="need half-precision norms",
    ),
    "nemotron": Family(
        Decoder(
            _BIASED,
            plain(bias="mlp_bias"),
            norm="layer",
            norm_bias=True,
            variant=with_squared_relu(norm="half layer", fresh_query=True),
        ),
        liger=LIGER_LOSS,
        has_tapes=True,
        tape=Taped(joins="both at once"),
    ),
    "phi": Family(
        Decoder(
            softmax(bias=True, names=("q_proj", "k_proj", "v_proj", "dense")),
            plain("mlp.fc1", "mlp.fc2", bias=True),
            norms=("input_layernorm",),
            norm="layer",
            norm_bias=True,
            final_norm="final_layernorm",
            head_bias=True,
            variant=with_tanh_gelu(fresh_query=True),
        ),
        cut=True,
        lora_kernels="unpatchable",
        has_tapes=True,
        tape=Taped(joins="both kept"),
    ),
    "internlm2": Family(
        Decoder(
            fused_softmax("attention.wqkv", "attention.wo", bias="bias"),
            gated("feed_forward", names=("w1", "w3", "w2")),
            norms=("attention_norm", "ffn_norm"),
            embedding="tok_embeddings",
            head="output",
            plan=full_plan,
        )
    ),
    "baichuan": Family(Decoder(fused_softmax("self_attn.W_pack", "self_attn.o_proj"))),
}
