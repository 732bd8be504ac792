"""Vision towers of multimodal models. Names are relative to the tower; the caller counts all ``vision``."""

from __future__ import annotations

from typing import cast

from advisor.models.config import Config
from advisor.models.layer_variant import LayerVariant
from advisor.models.parts import Tensors, conv, linear, loose, norm, within
from advisor.models.tower import Grid, Layers, Traced

QUICK_GELU = (2, 2)
"""QuickGELUActivation (activations.py@5.16.1) keeps its sigmoid."""
QUICK_GELU_GRADIENT = (6, 6)
PADDLE_PIXELS = 1536 * 1536
_QKVO = ("q_proj", "k_proj", "v_proj", "o_proj")
_QKV_OUT = ("q_proj", "k_proj", "v_proj", "out_proj")
_FC = ("fc1", "fc2")


def attention(names: tuple[str, ...], width: int, inner: int | None = None, bias: bool = False) -> Tensors:
    """Query, key, value and output projections of an encoder layer."""
    inner = inner or width
    *inputs, out = names
    return (
        *(t for name in inputs for t in linear(name, width, inner, "vision", bias)),
        *linear(out, inner, width, "vision", bias),
    )


def mlp(names: tuple[str, str], width: int, inner: int, bias: bool = True) -> Tensors:
    """The two linears of an encoder layer's MLP."""
    return (*linear(names[0], width, inner, "vision", bias), *linear(names[1], inner, width, "vision", bias))


def gated(width: int, inner: int, bias: bool = False, suffix: str = "") -> Tensors:
    """The three linears of a gated MLP."""
    up = (t for name in ("gate_proj", "up_proj") for t in linear(name + suffix, width, inner, "vision", bias))
    return (*up, *linear(f"down_proj{suffix}", inner, width, "vision", bias))


def norms(names: tuple[str, ...], width: int, bias: bool = True) -> Tensors:
    """Normalisations of one width."""
    return tuple(t for name in names for t in norm(name, width, bias))


def side(c: Config, key: str) -> int:
    """A size that the config gives as one number or as (height, width)."""
    value = c.get(key)
    return cast("list[int]", value)[0] if isinstance(value, list) else c.size(key)


def patches(c: Config) -> int:
    """Patches of a full image."""
    return (side(c, "image_size") // side(c, "patch_size")) ** 2


def clip(c: Config) -> Tensors:
    """CLIP's ViT (Radford et al. 2021)."""
    h, patch = c.hidden, c.size("patch_size")
    layer = (
        *within("self_attn", attention(_QKV_OUT, h, bias=True)),
        *norms(("layer_norm1", "layer_norm2"), h),
        *within("mlp", mlp(_FC, h, c.size("intermediate_size"))),
    )
    return (
        *loose("embeddings.class_embedding", (h,), "vision"),
        *conv("embeddings.patch_embedding", (h, c.size("num_channels", 3), patch, patch), "vision"),
        *loose("embeddings.position_embedding.weight", (patches(c) + 1, h), "vision"),
        *norms(("pre_layrnorm", "post_layernorm"), h),
        *within("encoder.layers.*", layer, c.layers),
    )


def siglip(c: Config) -> Tensors:
    """SigLIP's ViT (Zhai et al. 2023), by default with a pooling head; SigLIP 2 takes flat patches."""
    h, patch, channels = c.hidden, c.size("patch_size"), c.size("num_channels", 3)
    layer = (
        *within("self_attn", attention(_QKV_OUT, h, bias=True)),
        *norms(("layer_norm1", "layer_norm2"), h),
        *within("mlp", mlp(_FC, h, c.size("intermediate_size"))),
    )
    flat = c.maybe("num_patches") if c.model_type.startswith("siglip2") else None
    embedding = (
        linear("embeddings.patch_embedding", channels * patch**2, h, "vision", True)
        if flat
        else conv("embeddings.patch_embedding", (h, channels, patch, patch), "vision", True)
    )
    return (
        *embedding,
        *loose("embeddings.position_embedding.weight", (flat or patches(c), h), "vision"),
        *within("encoder.layers.*", layer, c.layers),
        *norms(("post_layernorm",), h),
        *(within("head", _pooling(h, c.size("intermediate_size"))) if c.flag("vision_use_head", True) else ()),
    )


def smolvlm(c: Config) -> Tensors:
    """SmolVLM's: SigLIP's ViT without its head."""
    return tuple(tensor for tensor in siglip(c) if not tensor.name.startswith("head."))


def paddleocr(c: Config) -> Tensors:
    """PaddleOCR-VL's: likewise, its patches turned by their place."""
    return smolvlm(c)


def _pooling(h: int, inner: int) -> Tensors:
    """SigLIP's attention pooling, by torch's own module: its output projection alone is a linear layer."""
    return (
        *loose("probe", (1, 1, h), "vision"),
        *loose("attention.in_proj_weight", (3 * h, h), "vision"),
        *loose("attention.in_proj_bias", (3 * h,), "vision"),
        *linear("attention.out_proj", h, h, "vision", True),
        *norms(("layernorm",), h),
        *within("mlp", mlp(_FC, h, inner)),
    )


def pixtral(c: Config) -> Tensors:
    """Pixtral's ViT: gated MLP, RMS norms, rotary positions (Agrawal et al. 2024)."""
    h, patch = c.hidden, c.size("patch_size")
    layer = (
        *norms(("attention_norm", "ffn_norm"), h, False),
        *within("feed_forward", gated(h, c.size("intermediate_size"))),
        *within("attention", attention(_QKVO, h)),
    )
    return (
        *conv("patch_conv", (h, c.size("num_channels", 3), patch, patch), "vision"),
        *norms(("ln_pre",), h, False),
        *within("transformer.layers.*", layer, c.layers),
    )


def internvl(c: Config) -> Tensors:
    """InternViT in transformers' own form."""
    h, patch = c.hidden, side(c, "patch_size")
    names = ("q_proj", "k_proj", "v_proj")
    bias = c.flag("attention_bias")
    layer = (
        *(t for name in ("lambda_1", "lambda_2") for t in loose(name, (h,), "vision")),
        *(t for name in names for t in linear(f"attention.{name}", h, h, "vision", bias)),
        *linear("attention.projection_layer", h, h, "vision", True),
        *(norms(("attention.q_norm", "attention.k_norm"), h, False) if c.flag("use_qk_norm") else ()),
        *within("mlp", mlp(_FC, h, c.size("intermediate_size"))),
        *norms(("layernorm_before", "layernorm_after"), h, c.get("norm_type") != "rms_norm"),
    )
    return (
        *loose("embeddings.cls_token", (1, 1, h), "vision"),
        *loose("embeddings.position_embeddings", (1, patches(c) + 1, h), "vision"),
        *conv(
            "embeddings.patch_embeddings.projection",
            (h, c.size("num_channels", 3), patch, patch),
            "vision",
            True,
        ),
        *within("encoder.layer.*", layer, c.layers),
        *(norms(("layernorm",), h) if c.get("use_mean_pooling") is False else ()),
    )


def llama4(c: Config) -> Tensors:
    """Llama 4's ViT and its pixel-shuffle adapter."""
    h, patch = c.hidden, c.size("patch_size")
    layer = (
        *within("self_attn", attention(_QKVO, h, bias=True)),
        *within("mlp", mlp(_FC, h, c.size("intermediate_size"))),
        *norms(("input_layernorm", "post_attention_layernorm"), h),
    )
    out = c.size("projector_output_dim")
    return (
        *loose("class_embedding", (h,), "vision"),
        *loose("positional_embedding_vlm", (patches(c) + 1, h), "vision"),
        *linear("patch_embedding.linear", c.size("num_channels", 3) * patch**2, h, "vision"),
        *norms(("layernorm_pre", "layernorm_post"), h),
        *within("model.layers.*", layer, c.layers),
        *linear("vision_adapter.mlp.fc1", c.size("intermediate_size"), c.size("projector_input_dim"), "vision"),
        *linear("vision_adapter.mlp.fc2", out, out, "vision"),
    )


def mllama(c: Config) -> Tensors:
    """Llama 3.2's ViT: tiles with embeddings of their own, local and gated global layers."""
    h, patch, tiles = c.hidden, c.size("patch_size"), c.size("max_num_tiles", 4)
    ratios = c.get("supported_aspect_ratios")
    shapes = 1 + (len(cast("list[object]", ratios)) if isinstance(ratios, list) else 8)
    tokens = patches(c) + 1
    layer = (
        *within("self_attn", attention(_QKVO, h)),
        *within("mlp", mlp(_FC, h, c.size("intermediate_size"))),
        *norms(("input_layernorm", "post_attention_layernorm"), h),
    )
    gates = (t for name in ("gate_attn", "gate_ffn") for t in loose(name, (1,), "vision"))
    tile_embeddings = (
        t
        for name in ("pre_tile_positional_embedding", "post_tile_positional_embedding")
        for t in (
            *loose(f"{name}.gate", (1,), "vision"),
            *loose(f"{name}.embedding.weight", (shapes, tiles * h), "vision"),
        )
    )
    return (
        *loose("class_embedding", (h,), "vision"),
        *conv("patch_embedding", (h, c.size("num_channels", 3), patch, patch), "vision"),
        *loose("gated_positional_embedding.gate", (1,), "vision"),
        *loose("gated_positional_embedding.embedding", (tokens, h), "vision"),
        *loose("gated_positional_embedding.tile_embedding.weight", (shapes, tiles * tokens * h), "vision"),
        *tile_embeddings,
        *norms(("layernorm_pre", "layernorm_post"), h),
        *within("transformer.layers.*", layer, c.layers),
        *within("global_transformer.layers.*", (*gates, *layer), c.size("num_global_layers", 8)),
    )


def gemma4(c: Config) -> Tensors:
    """Gemma 4's encoder: factorised positions, four norms a layer, normed queries and keys."""
    h, head, patch = c.hidden, c.head_dim, c.size("patch_size")
    names = ("q_proj.linear", "k_proj.linear", "v_proj.linear", "o_proj.linear")
    layer = (
        *within("self_attn", attention(names, h, c.heads * head)),
        *norms(("self_attn.q_norm", "self_attn.k_norm"), head, False),
        *within("mlp", gated(h, c.size("intermediate_size"), suffix=".linear")),
        *norms(("input_layernorm", "post_attention_layernorm"), h, False),
        *norms(("pre_feedforward_layernorm", "post_feedforward_layernorm"), h, False),
    )
    return (
        *loose("patch_embedder.position_embedding_table", (2, c.size("position_embedding_size"), h), "vision"),
        *linear("patch_embedder.input_proj", 3 * patch**2, h, "vision"),
        *within("encoder.layers.*", layer, c.layers),
    )


def gemma3n(_: Config) -> Tensors:
    """Gemma 3n's MobileNetV5, a timm model: a recorded count, its layers are not listed."""
    return loose("timm_model", (294_126_912,), "vision")


def fixed(c: Config) -> Grid:
    """Every image in one size; SigLIP 2 in up to ten tiles (models/lfm2_vl/image_processing_lfm2_vl.py@5.16.1)."""
    if c.model_type.startswith("siglip2"):
        return Grid("tiles", side(c, "patch_size"), 2, side=512, most=10)
    return Grid("fixed", side(c, "patch_size"), side=side(c, "image_size"))


def _with_class(c: Config) -> Grid:
    """Likewise, with a class token."""
    return Grid("fixed", side(c, "patch_size"), side=side(c, "image_size"), extra=1)


def longest(c: Config) -> Grid:
    """Images keep their shape (processing_pixtral.py@5.16.1)."""
    return Grid("longest", side(c, "patch_size"), side=side(c, "image_size"))


def tiles(c: Config) -> Grid:
    """Up to twelve tiles and the whole image; four patches are one token (models/internvl/processing_internvl.py)."""
    return Grid("tiles", side(c, "patch_size"), 2, side(c, "image_size"), most=12, extra=1)


def chunks(c: Config) -> Grid:
    """Up to sixteen tiles and the whole image (models/llama4/image_processing_llama4.py, max_patches@5.16.1)."""
    return Grid("tiles", side(c, "patch_size"), 2, side(c, "image_size"), most=16, extra=1)


def split(c: Config) -> Grid:
    """Enlarged to four tiles along the longer edge, and the whole image (image_processing_smolvlm.py@5.16.1)."""
    return Grid("split", side(c, "patch_size"), 3, side(c, "image_size"), most=4)


def resized(c: Config) -> Grid:
    """To multiples of two patches, up to max_pixels (image_processing_paddleocr_vl.py@5.16.1)."""
    return Grid("near", side(c, "patch_size"), c.size("spatial_merge_size", 2), most=PADDLE_PIXELS)


def canvas(c: Config) -> Grid:
    """As many tiles as there can be, padded (models/mllama/image_processing_mllama.py, pad@5.16.1)."""
    side_, tiles_ = side(c, "image_size"), c.size("max_num_tiles", 4)
    return Grid("canvas", side(c, "patch_size"), side=side_, most=tiles_, extra=1)


def pooled(c: Config) -> Grid:
    """280 tokens of nine patches, padded (models/gemma4/image_processing_gemma4.py, max_soft_tokens@5.16.1)."""
    return Grid("padded", side(c, "patch_size"), 3, most=280 * 9)


def coarse(_: Config) -> Grid:
    """768 pixels square and 256 tokens (timm/models/mobilenetv5.py@1.0.31; models/gemma3n, Gemma3nProcessor@5.16.1)."""
    return Grid("fixed", 48, side=768)


_QUICK = LayerVariant(activation=QUICK_GELU, activation_gradient=QUICK_GELU_GRADIENT)
LAYERS = {
    clip: Layers("encoder.layers", "layer", _with_class, (4, 6, 2, 4), _QUICK, wide=True),
    siglip: Layers("encoder.layers", "layer", fixed, (4, 6, 2, 4)),
    smolvlm: Layers("encoder.layers", "layer", split, (4, 4, 4, 4), bare=True, placed=True, pixel_mask=True),
    paddleocr: Layers("encoder.layers", "layer", resized, (4, 4, 4, 4), LayerVariant(joined_output=True), hooked=False),
    pixtral: Layers("transformer.layers", "rms", longest, (2, 4, 2, 4), wide_if_upcast=True),
    mllama: Layers(
        "transformer.layers",
        "layer",
        canvas,
        (4, 4, 4, 4),
        heads="attention_heads",
        checkpointed=False,
        masked=True,
        then=Layers(
            "global_transformer.layers",
            "layer",
            canvas,
            (4, 4, 4, 4),
            LayerVariant(branch_scales=True),
            heads="attention_heads",
        ),
    ),
    gemma4: Layers(
        "encoder.layers",
        "rms",
        pooled,
        (4, 4, 4, 4),
        LayerVariant(norm="fp32 rms", root_by_power=True),
        hooked=False,
        norms=4,
        normed=True,
    ),
    # Traced whole: mobilenetv5_300m_enc of timm 1.0.31, whose flag for checkpoints is not the one transformers sets.
    gemma3n: Layers(
        "",
        "rms",
        coarse,
        (0, 0, 0, 0),
        hooked=False,
        checkpointed=False,
        traced=Traced(2048, (32_332_784, 0, 19_551_848, 0), (153_116, 0, 120_300, 0), (1_255_842, 737_568)),
    ),
    llama4: Layers("model.layers", "layer", chunks, (5, 5, 1, 3)),
    internvl: Layers("encoder.layer", "layer", tiles, (2, 4, 2, 4), LayerVariant(branch_scales=True)),
}
"""The layers of those towers that transformers' modules confirm, by what builds their tensors."""
