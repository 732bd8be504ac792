"""Audio towers of multimodal models. Names are relative to the tower; the caller counts all as ``audio``."""

from __future__ import annotations

from math import isqrt

from advisor.models.config import Config
from advisor.models.layer_variant import LayerVariant
from advisor.models.parts import Tensors, conv, linear, loose, norm, within
from advisor.models.tower import Grid, Layers, Traced


def voxtral(c: Config) -> Tensors:
    """Voxtral's encoder, which is Whisper's (Radford et al. 2022): keys have no bias."""
    h, inner = c.hidden, c.size("intermediate_size")
    layer = (
        *linear("self_attn.k_proj", h, h, "audio"),
        *(t for name in ("v_proj", "q_proj", "out_proj") for t in linear(f"self_attn.{name}", h, h, "audio", True)),
        *(t for name in ("self_attn_layer_norm", "final_layer_norm") for t in norm(name, h, True)),
        *linear("fc1", h, inner, "audio", True),
        *linear("fc2", inner, h, "audio", True),
    )
    return (
        *conv("conv1", (h, c.size("num_mel_bins"), 3), "audio", True),
        *conv("conv2", (h, h, 3), "audio", True),
        *loose("embed_positions.weight", (c.size("max_source_positions"), h), "audio"),
        *within("layers.*", layer, c.layers),
        *norm("layer_norm", h, True),
    )


def gemma4(c: Config) -> Tensors:
    """Gemma 4's conformer (Gulati et al. 2020) with its output projection."""
    h, kernel, out = c.hidden, c.size("conv_kernel_size", 5), c.size("output_proj_dims")
    convolution = (
        *linear("linear_start.linear", h, 2 * h, "audio"),
        *linear("linear_end.linear", h, h, "audio"),
        *conv("depthwise_conv1d", (h, 1, kernel), "audio"),
        *_norms(("pre_layer_norm", "conv_norm"), h),
    )
    layer = (
        *within("feed_forward1", _feed_forward(h, ".linear")),
        *within("feed_forward2", _feed_forward(h, ".linear")),
        *loose("self_attn.per_dim_scale", (h // c.heads,), "audio"),
        *_linears(
            ("q_proj.linear", "k_proj.linear", "v_proj.linear", "post.linear", "relative_k_proj"),
            h,
            "self_attn",
        ),
        *within("lconv1d", convolution),
        *_norms(("norm_pre_attn", "norm_post_attn", "norm_out"), h),
    )
    channels = c.ints("subsampling_conv_channels") or [128, 32]
    return (
        *_subsampling(h, channels, "layer"),
        *within("layers.*", layer, c.layers),
        *linear("output_proj", h, out, "audio", True),
    )


def gemma3n(c: Config) -> Tensors:
    """Gemma 3n's conformer, the Universal Speech Model's (Zhang et al. 2023)."""
    h, kernel = c.hidden, c.size("conf_conv_kernel_size", 5)
    heads, layers = c.size("conf_num_attention_heads", 8), c.size("conf_num_hidden_layers", 12)
    convolution = (
        *_norms(("pre_layer_norm", "conv_norm"), h),
        *linear("linear_start", h, 2 * h, "audio"),
        *conv("depthwise_conv1d", (h, 1, kernel), "audio"),
        *linear("linear_end", h, h, "audio"),
    )
    layer = (
        *within("ffw_layer_start", _feed_forward(h, "")),
        *within("ffw_layer_end", _feed_forward(h, "")),
        *_norms(("attention.pre_attn_norm", "attention.post_norm", "norm"), h),
        *loose("attention.attn.per_dim_scale", (h // heads,), "audio"),
        *_linears(("relative_position_embedding.pos_proj", "q_proj", "k_proj", "v_proj"), h, "attention.attn"),
        *linear("attention.post", h, h, "audio"),
        *within("lconv1d", convolution),
    )
    channels = c.ints("sscp_conv_channel_size") or [128, 32]
    return (*_subsampling(h, channels, "conv_"), *within("conformer.*", layer, layers))


def _feed_forward(h: int, suffix: str) -> Tensors:
    return (
        *linear(f"ffw_layer_1{suffix}", h, 4 * h, "audio"),
        *linear(f"ffw_layer_2{suffix}", 4 * h, h, "audio"),
        *_norms(("pre_layer_norm", "post_layer_norm"), h),
    )


def _subsampling(h: int, channels: list[int], stem: str) -> Tensors:
    """Two convolutions that halve time and the 128 mel bins each, and a projection to the encoder's width."""
    first, second = channels
    tensors = (
        *conv(f"{stem}0.conv", (first, 1, 3, 3), "audio"),
        *norm(f"{stem}0.norm", first),
        *conv(f"{stem}1.conv", (second, first, 3, 3), "audio"),
        *norm(f"{stem}1.norm", second),
        *linear("input_proj_linear", second * 128 // 4, h, "audio"),
    )
    return within("subsample_conv_projection", tensors)


def _linears(names: tuple[str, ...], h: int, prefix: str) -> Tensors:
    return tuple(t for name in names for t in linear(f"{prefix}.{name}", h, h, "audio"))


def _norms(names: tuple[str, ...], h: int) -> Tensors:
    return tuple(t for name in names for t in norm(name, h))


def seconds(c: Config) -> Grid:
    """Half a minute of sound, whatever its length: every second frame is a position, and four are one token."""
    return Grid("padded", 1, 2, most=c.size("max_source_positions"))


def _quarters(_: Config) -> Grid:
    """Likewise 25 positions a second, each a token (models/gemma4/feature_extraction_gemma4.py@5.16.1)."""
    return Grid("padded", 1, most=750)


def reduced(c: Config) -> Grid:
    """Likewise, of which the encoder returns every fourth (models/gemma3n, Gemma3nAudioEncoder.forward@5.16.1)."""
    return Grid("padded", 1, isqrt(c.size("conf_reduction_factor", 4)), most=750)


_FRAME = 4 * 128
"""Four frames of 128 mel bins are one position."""
LAYERS = {
    voxtral: Layers("layers", "layer", seconds, (4, 4, 2, 2), LayerVariant(fresh_query=True)),
    gemma4: Layers(
        "layers",
        "rms",
        _quarters,
        (0, 0, 0, 0),
        hooked=False,
        checkpointed=False,
        frame=_FRAME,
        traced=Traced(1024, (229_007, 153_231, 241_331, 163_507), (20_472, 24_568, 20_472, 24_568), (37_320, 39_272)),
    ),
    gemma3n: Layers(
        "conformer",
        "rms",
        reduced,
        (0, 0, 0, 0),
        hooked=False,
        checkpointed=False,
        frame=_FRAME,
        heads="conf_num_attention_heads",
        traced=Traced(1536, (238_303, 133_801, 238_302, 133_801), (30_712, 36_856, 30_712, 36_856), (47_260, 44_188)),
    ),
}
"""The layers of those towers that transformers' modules confirm, by what builds their tensors."""
