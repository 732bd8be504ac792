"""Mixtures of experts on an otherwise Llama-like decoder: one table row a model type."""

from __future__ import annotations

from functools import partial

from advisor.models.attention import softmax
from advisor.models.blocks import Mlp
from advisor.models.config import Config
from advisor.models.decoder import Decoder, every_layer_sparse, plain_plan
from advisor.models.family import EXPERT_MLP, EXPERT_W, LIGER, LIGER_LAYERS, MLP_TARGETS, W_TARGETS, Family, Taped
from advisor.models.layer_variant import LayerVariant
from advisor.models.mlp import experts, gated
from advisor.models.parts import Layer, Part, Tensors, linear, loose

_HEAD_NORM = softmax(bias="attention_bias", query_key_norm="head")
QWEN_SHARED = experts(shared="shared_expert", shared_width="shared_expert_intermediate_size", shared_gate=True)


def qwen_marks(c: Config) -> list[bool]:
    """Qwen's rule: experts in each ``decoder_sparse_step``-th layer but those of ``mlp_only_layers``."""
    step, dense = c.size("decoder_sparse_step", 1), c.ints("mlp_only_layers")
    return [c.experts > 0 and i not in dense and (i + 1) % step == 0 for i in range(c.layers)]


def _qwen_plan(c: Config) -> list[Layer]:
    """Qwen's windows and experts."""
    return with_experts(plain_plan(c), qwen_marks(c))


def leading_dense_marks(c: Config) -> list[bool]:
    """Dense layers first, as ``mlp_layer_types``, ``first_k_dense_replace`` or ``num_dense_layers`` say."""
    types = c.strings("mlp_layer_types")
    if types:
        return [kind != "dense" for kind in types[: c.layers]]
    dense = next((n for key in ("first_k_dense_replace", "num_dense_layers") if (n := c.maybe(key)) is not None), 0)
    step = c.maybe("moe_layer_freq") or 1
    return [i >= dense and i % step == 0 for i in range(c.layers)]


def _leading_dense_plan(c: Config, every: int | None = None) -> list[Layer]:
    """Windows as the config has them, experts after the leading dense layers."""
    return with_experts(plain_plan(c, every), leading_dense_marks(c))


def with_experts(layers: list[Layer], sparse: list[bool]) -> list[Layer]:
    """The layers, marked sparse where told; ``sparse`` repeats its last word if it is short."""
    marks = sparse + sparse[-1:] * (len(layers) - len(sparse))
    return [
        Layer(layer.mixer, "sparse" if mark else "dense", layer.window)
        for layer, mark in zip(layers, marks, strict=False)
    ]


def granite_mlp(c: Config, layer: Layer) -> Part:
    """Granite: a shared gated MLP in every layer, routed experts next to it in the sparse ones."""
    hidden, shared = c.hidden, c.maybe("shared_intermediate_size") or 0
    up, down = "shared_mlp.input_linear", "shared_mlp.output_linear"
    tensors = (*linear(up, hidden, 2 * shared, "mlp"), *linear(down, shared, hidden, "mlp")) if shared else ()
    if layer.mlp == "dense":
        return Part(tensors, mlp=Mlp(shared))
    routed = experts("block_sparse_moe", router="router", width="intermediate_size")(c, layer)
    assert routed.mlp is not None
    mlp = Mlp(routed.mlp.width, True, routed.mlp.experts, routed.mlp.experts_per_token, shared)
    return Part((*routed.tensors, *tensors), mlp=mlp)


def _ernie_plan(c: Config) -> list[Layer]:
    """Ernie 4.5: experts in each ``moe_layer_interval``-th layer from a first to a last one (-1: all)."""
    every, first = c.size("moe_layer_interval", 1), c.size("moe_layer_start_index", 0)
    end = c.get("moe_layer_end_index")
    last = end if isinstance(end, int) and end >= 0 else c.layers - 1
    sparse = [(i + 1) % every == 0 and first <= i <= last for i in range(c.layers)]
    return with_experts([Layer()] * c.layers, sparse)


def _ernie_bias(c: Config, layer: Layer) -> Tensors:
    """Ernie's trained correction of the router's choice."""
    name = "mlp.gate.moe_statics.e_score_correction_bias"
    return loose(name, (1, c.experts), "router") if layer.mlp == "sparse" else ()


def _afmoe_bias(c: Config, layer: Layer) -> Tensors:
    """AFMoE's trained correction of the router's choice."""
    return loose("mlp.expert_bias", (c.experts,), "router") if layer.mlp == "sparse" else ()


FAMILIES: dict[str, Family] = {
    "mixtral": Family(
        Decoder(
            mlps=experts(width="intermediate_size"),
            plan=every_layer_sparse,
            variant=LayerVariant(normalized_routing=True, fp32_routing=True),
        ),
        liger=LIGER,
        cut=True,
        expert_linears=EXPERT_W,
        expert_targets=W_TARGETS,
        has_tapes=True,
        tape=Taped(routes="softmax fp32 shares"),
        merges_experts=True,
    ),
    "qwen2_moe": Family(
        Decoder(
            softmax(bias="qkv_bias", out_bias=False),
            {"sparse": QWEN_SHARED, "dense": gated()},
            _qwen_plan,
            variant=LayerVariant(shared_first=True),
        ),
        cut=True,
        expert_linears=EXPERT_MLP,
        merges_experts=True,
    ),
    "qwen3_moe": Family(
        Decoder(
            _HEAD_NORM,
            {"sparse": experts(), "dense": gated()},
            _qwen_plan,
            variant=LayerVariant(normalized_routing=True),
        ),
        liger=LIGER,
        cut=True,
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "qwen3_vl_moe_text": Family(
        Decoder(_HEAD_NORM, {"sparse": experts(), "dense": gated()}, _qwen_plan),
        liger=LIGER_LAYERS,
        lora_kernels="unpatchable",
    ),
    "olmoe": Family(
        Decoder(
            softmax(bias="attention_bias", query_key_norm="width"),
            experts(width="intermediate_size"),
            every_layer_sparse,
        ),
        cut=True,
        lora_kernels="unpatchable",
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        has_tapes=True,
        tape=Taped(norms="before heads", heads_last=True, routes="softmax"),
        merges_experts=True,
    ),
    "phimoe": Family(
        Decoder(
            softmax(bias="attention_bias"),
            experts(router="router", router_linear=True, width="intermediate_size"),
            every_layer_sparse,
            norm="layer",
            norm_bias=True,
            head_bias="lm_head_bias",
        ),
        lora_kernels="need half-precision norms",
        expert_linears=EXPERT_W,
        router_returns_choice=True,
        merges_experts=True,
    ),
    "minimax_m2": Family(
        Decoder(
            softmax(query_key_norm="width"),
            experts(width="intermediate_size"),
            every_layer_sparse,
            variant=LayerVariant(
                fresh_query=True, wide_query_key_norm=True, normalized_routing=True, fp32_routing=True
            ),
        ),
        cut=True,
        lora_kernels="unpatchable",
        expert_targets=W_TARGETS,
        merges_experts=True,
    ),
    "granitemoe": Family(
        Decoder(
            softmax(bias="attention_bias"),
            experts("block_sparse_moe", router="router", width="intermediate_size"),
            every_layer_sparse,
        ),
        cut=True,
        scales_logits=True,
    ),
    "gpt_oss": Family(
        Decoder(
            softmax(bias="attention_bias", sinks=True),
            experts(router="router", width="intermediate_size", bias=True, transposed=True),
            lambda c: [Layer(layer.mixer, "sparse", layer.window) for layer in plain_plan(c, 2)],
            variant=LayerVariant(norm="fp32 rms", fresh_query=True, clamped_experts=True, sinks=True),
        ),
        liger=LIGER - {"glu"},
        cut=True,
        sdpa=False,
        flash_stand_in="kernels-community/vllm-flash-attn3",
    ),
    "granitemoeshared": Family(
        Decoder(softmax(bias="attention_bias"), granite_mlp, every_layer_sparse), cut=True, scales_logits=True
    ),
    "dots1": Family(
        Decoder(
            _HEAD_NORM,
            {"sparse": experts(shared="shared_experts", shared_count="n_shared_experts"), "dense": gated()},
            _leading_dense_plan,
        ),
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "exaone_moe": Family(
        Decoder(
            softmax(query_key_norm="head"),
            {"sparse": experts(shared="shared_experts", shared_count="num_shared_experts"), "dense": gated()},
            partial(_leading_dense_plan, every=4),
        ),
        cut=True,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "ernie4_5_moe": Family(
        Decoder(
            softmax(bias="use_bias"),
            {
                "sparse": experts(
                    shared="shared_experts", shared_count="moe_num_shared_experts", shared_bias="use_bias"
                ),
                "dense": gated(bias="use_bias"),
            },
            _ernie_plan,
            head_bias="use_bias",
            loose=_ernie_bias,
            variant=LayerVariant(shared_first=True),
        ),
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "flex_olmo": Family(
        Decoder(
            softmax(bias="attention_bias", query_key_norm="width"),
            experts(width="intermediate_size"),
            every_layer_sparse,
            ("post_attention_layernorm", "post_feedforward_layernorm"),
        ),
        lora_kernels="unpatchable",
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "hunyuan_v1_moe": Family(
        Decoder(
            softmax(bias="attention_bias", query_key_norm="head", norm_names=("query_layernorm", "key_layernorm")),
            experts(
                router="gate.wg",
                router_linear=True,
                width="intermediate_size",
                shared="shared_mlp",
                shared_width="intermediate_size",
            ),
            every_layer_sparse,
            variant=LayerVariant(shared_first=True),
        ),
        liger=LIGER,
        cut=True,
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "glm4v_moe_text": Family(
        Decoder(
            softmax(bias="attention_bias", out_bias=False),
            {"sparse": experts(shared="shared_experts", shared_count="n_shared_experts"), "dense": gated()},
            _leading_dense_plan,
        ),
        lora_kernels="unpatchable",
    ),
    "glm4_moe": Family(
        Decoder(
            softmax(bias="attention_bias", out_bias=False, query_key_norm="head", norm_key="use_qk_norm"),
            {"sparse": experts(shared="shared_experts", shared_count="n_shared_experts"), "dense": gated()},
            _leading_dense_plan,
            variant=LayerVariant(fresh_query=True, casts_router=True),
        ),
        cut=True,
        lora_kernels="unpatchable",
        expert_linears=EXPERT_MLP,
        has_tapes=True,
        tape=Taped(joins="both", norms="in turn", routes="grouped sigmoid"),
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "afmoe": Family(
        Decoder(
            softmax(query_key_norm="head", gate="gate_proj"),
            {
                "sparse": experts(
                    router="router.gate",
                    router_linear=True,
                    shared="shared_experts",
                    shared_count="num_shared_experts",
                ),
                "dense": gated(),
            },
            partial(_leading_dense_plan, every=4),
            norms=("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm"),
            loose=_afmoe_bias,
            variant=LayerVariant(norm="fp32 rms", normalized_routing=True, fp32_routing=True, shared_first=True),
        ),
        cut=True,
        lora_kernels="unpatchable",
        absent_leaf="AfmoeMoE",
        expert_linears=EXPERT_MLP,
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
}
