"""Gemma 3n and 4: per-layer inputs, shared keys and values, mixed head widths, extra branches."""

from __future__ import annotations

from typing import cast

from advisor.models.blocks import Attention, Mlp
from advisor.models.config import Config
from advisor.models.decoder import FULL, SANDWICH, SLIDING, Decoder, fitted
from advisor.models.family import LIGER_LAYERS, LIGER_WITHOUT_ROPE, Family
from advisor.models.layer_variant import LayerVariant
from advisor.models.mlp import experts, gated_linears
from advisor.models.parts import Layer, Part, Tensors, linear, loose, norm, within
from advisor.record import replace

_SHARED = "shared"
"""Ends the ``Layer.mixer`` of a layer that reuses keys and values: ``sliding_attention/shared``."""


def _gemma_plan(c: Config, every: int, wide: bool = False) -> list[Layer]:
    """Sliding and full layers; the last ``num_kv_shared_layers`` have no keys and values of their own."""
    types = fitted(
        c.strings("layer_types") or [SLIDING if (i + 1) % every else FULL for i in range(c.layers)], c.layers
    )
    first = c.layers - (c.maybe("num_kv_shared_layers") or 0)
    window = c.maybe("sliding_window")
    layers: list[Layer] = []
    for i, kind in enumerate(types):
        mixer = f"{kind}/{_SHARED}" if i >= first else kind
        mlp = "wide" if wide and i >= first and c.flag("use_double_wide_mlp") else _width_key(c, i)
        layers.append(Layer(mixer, mlp, window if kind == SLIDING else None))
    return layers


def _width_key(c: Config, index: int) -> str:
    """Gemma 3n may give each layer its own width; the width is then the layer's MLP key."""
    widths = c.ints("intermediate_size")
    return str(widths[index]) if index < len(widths) else "dense"


def _gemma_attention(c: Config, layer: Layer) -> Part:
    """Attention with query and key norms; Gemma 4's full layers have wider heads, and keys for values."""
    full = layer.mixer.startswith(FULL)
    head = (c.maybe("global_head_dim") if full else None) or c.head_dim
    tied = full and c.flag("attention_k_eq_v")
    kv_heads = (c.maybe("num_global_key_value_heads") if tied else None) or c.kv_heads
    width, kv_width, bias, at = c.heads * head, kv_heads * head, c.flag("attention_bias"), "self_attn"
    tensors = (
        *linear(f"{at}.q_proj", c.hidden, width, "attention", bias),
        *norm(f"{at}.q_norm", head),
        *linear(f"{at}.o_proj", width, c.hidden, "attention", bias),
    )
    if not layer.mixer.endswith(_SHARED):
        tensors += linear(f"{at}.k_proj", c.hidden, kv_width, "attention", bias)
        tensors += norm(f"{at}.k_norm", head)
        tensors += () if tied else linear(f"{at}.v_proj", c.hidden, kv_width, "attention", bias)
    return Part(
        tensors,
        attention=Attention(
            "softmax",
            c.heads,
            kv_heads,
            head,
            width,
            kv_width,
            kv_width,
            layer.window,
            True,
            value_norm=True,
            own_keys=not layer.mixer.endswith(_SHARED),
        ),
    )


def _gemma4_mlp(c: Config, layer: Layer) -> Part:
    """Gemma 4: a gated MLP, twice as wide in some layers, with routed experts next to it in some models."""
    width = c.size("intermediate_size") * (2 if layer.mlp == "wide" else 1)
    dense = gated_linears("mlp", c.hidden, width)
    if not c.flag("enable_moe_block"):
        return Part(dense, mlp=Mlp(width))
    routed = experts("", router="router.proj", router_linear=True)(c, layer)
    assert routed.mlp is not None
    tensors = (
        *dense,
        *loose("router.scale", (c.hidden,), "router"),
        *loose("router.per_expert_scale", (c.experts,), "router"),
        *routed.tensors,
    )
    return Part(tensors, mlp=replace(routed.mlp, shared_width=width))


def _gemma4_norms(c: Config) -> tuple[str, ...]:
    """Four norms a layer, three more around the experts, one more after the per-layer input."""
    experts = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    names = SANDWICH + (experts if c.flag("enable_moe_block") else ())
    return (*names, "post_per_layer_input_norm") if c.maybe("hidden_size_per_layer_input") else names


def _per_layer_input(c: Config, _: Layer) -> Tensors:
    """The gate and projection through which a layer takes its own token embedding."""
    width = c.maybe("hidden_size_per_layer_input")
    if not width:
        return ()
    return (
        *linear("per_layer_input_gate", c.hidden, width, "other"),
        *linear("per_layer_projection", width, c.hidden, "other"),
    )


def _per_layer_embedding(c: Config) -> Tensors:
    """The embedding table that holds a small vector a layer for each token, and its projection."""
    width = c.maybe("hidden_size_per_layer_input")
    if not width:
        return ()
    return (
        *loose(
            "embed_tokens_per_layer.weight",
            (c.size("vocab_size_per_layer_input"), c.layers * width),
            "embedding",
        ),
        *linear("per_layer_model_projection", c.hidden, c.layers * width, "other"),
        *norm("per_layer_projection_norm", width),
    )


def _gemma3n_mlp(c: Config, layer: Layer) -> Part:
    """Gemma 3n: a gated MLP of the layer's own width, whose gate keeps its largest values alone in some layers."""
    key, _, thresholded = layer.mlp.partition("/")
    width = int(key) if key.isdigit() else c.size("intermediate_size")
    return Part(gated_linears("mlp", c.hidden, width), mlp=Mlp(width, thresholded=bool(thresholded)))


def _gemma3n_plan(c: Config) -> list[Layer]:
    """Gemma's layers, marked where ``activation_sparsity_pattern`` is above zero."""
    pattern = c.get("activation_sparsity_pattern")
    shares = cast("list[object]", pattern) if isinstance(pattern, list) else []
    layers = _gemma_plan(c, 5)
    sparse = [isinstance(share, float) and share > 0 for share in shares[: len(layers)]]
    marks = [*sparse, *[False] * (len(layers) - len(sparse))]
    return [
        replace(layer, mlp=f"{layer.mlp}/thresholded") if mark else layer
        for layer, mark in zip(layers, marks, strict=True)
    ]


def _gemma3n_loose(c: Config, layer: Layer) -> Tensors:
    """AltUp's prediction and correction, and the low-rank LAuReL branch."""
    inputs, hidden, rank = c.size("altup_num_inputs", 4), c.hidden, c.size("laurel_rank", 64)
    altup = (
        *loose("correct_output_scale", (hidden,), "other"),
        *linear("correction_coefs", inputs, inputs, "other"),
        *linear("prediction_coefs", inputs, inputs * inputs, "other"),
        *linear("modality_router", hidden, inputs, "other"),
        *norm("router_norm", hidden),
    )
    laurel = (
        *linear("linear_left", hidden, rank, "other"),
        *linear("linear_right", rank, hidden, "other"),
        *norm("post_laurel_norm", hidden),
    )
    return (*within("altup", altup), *within("laurel", laurel), *_per_layer_input(c, layer))


def _gemma3n_outside(c: Config) -> Tensors:
    """The per-layer embedding, and the projections between AltUp's streams."""
    streams = c.size("altup_num_inputs", 4) - 1
    projections = (
        t
        for name in ("altup_projections", "altup_unembed_projections")
        for t in linear(f"{name}.*", c.hidden, c.hidden, "other")
    )
    return (*_per_layer_embedding(c), *(replace(t, count=streams) for t in projections))


_GEMMA_4 = LayerVariant(
    norm="fp32 rms",
    root_by_power=True,
    normalized_routing=True,
    fp32_routing=True,
    normed_router=True,
    shared_first=True,
)

FAMILIES: dict[str, Family] = {
    "gemma3n_text": Family(
        Decoder(
            _gemma_attention,
            _gemma3n_mlp,
            _gemma3n_plan,
            (*SANDWICH, "post_per_layer_input_norm"),
            loose=_gemma3n_loose,
            outside=_gemma3n_outside,
            variant=LayerVariant(norm="fp32 rms", root_by_power=True, widens_stream=True),
        ),
        cut=True,
        lora_kernels="unpatchable",
        soft_capped=True,
    ),
    "gemma4_text": Family(
        Decoder(
            _gemma_attention,
            _gemma4_mlp,
            lambda c: _gemma_plan(c, 6, True),
            layer_norms=_gemma4_norms,
            loose=_per_layer_input,
            outside=_per_layer_embedding,
            variant=_GEMMA_4,
        ),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        hybrid_attention=True,
    ),
    "gemma4_unified_text": Family(
        Decoder(
            _gemma_attention,
            _gemma4_mlp,
            lambda c: _gemma_plan(c, 6, True),
            layer_norms=_gemma4_norms,
            loose=_per_layer_input,
            outside=_per_layer_embedding,
            variant=_GEMMA_4,
        ),
        liger=LIGER_LAYERS - {"rope"},
        cut=True,
        hybrid_attention=True,
    ),
}
