"""The vision encoders of Qwen's and GLM's line, which carry their own merger and sit at ``visual``."""

from __future__ import annotations

from advisor.models.config import Config
from advisor.models.layer_variant import LayerVariant
from advisor.models.parts import Tensors, conv, linear, loose, norm, within
from advisor.models.tower import Grid, Layers
from advisor.models.vision import QUICK_GELU, QUICK_GELU_GRADIENT, gated, mlp, norms, patches
from advisor.record import replace

_MOST_PIXELS = 12_845_056
"""As the published processors have it: preprocessor_config.json of Qwen/Qwen2.5-VL-7B-Instruct."""
_COPIED = LayerVariant(joined_output=True)
"""Each image attends on its own (models/qwen2_vl, VisionAttention.forward@5.16.1)."""


def patch_embedding(c: Config, width: int, bias: bool) -> Tensors:
    """Patches of a few frames by a three-dimensional convolution."""
    patch, frames = c.size("patch_size"), c.size("temporal_patch_size", 2)
    return conv("patch_embed.proj", (width, c.size("in_channels", 3), frames, patch, patch), "vision", bias)


def attention(width: int, bias: bool) -> Tensors:
    """Fused queries, keys and values, and the output projection."""
    return (
        *linear("attn.qkv", width, 3 * width, "vision", bias),
        *linear("attn.proj", width, width, "vision", bias),
    )


def qwen2(c: Config) -> Tensors:
    """Qwen2-VL: LayerNorm and a plain MLP; ``hidden_size`` is the language model's."""
    width, out = c.size("embed_dim"), c.hidden
    inner = width * c.size("mlp_ratio", 4)
    layer = (
        *norms(("norm1", "norm2"), width),
        *attention(width, True),
        *within("mlp", mlp(("fc1", "fc2"), width, inner)),
    )
    return _tower(c, width, layer, out, norm_bias=True)


def qwen2_5(c: Config) -> Tensors:
    """Qwen2.5-VL: RMS norms and a gated MLP with biases."""
    width = c.hidden
    layer = (
        *norms(("norm1", "norm2"), width, False),
        *attention(width, True),
        *within("mlp", gated(width, c.size("intermediate_size"), True)),
    )
    return _tower(c, width, layer, c.size("out_hidden_size"), norm_bias=False)


def _tower(c: Config, width: int, layer: Tensors, out: int, norm_bias: bool) -> Tensors:
    merged = width * c.size("spatial_merge_size", 2) ** 2
    return (
        *patch_embedding(c, width, False),
        *within("blocks.*", layer, c.size("depth")),
        *norm("merger.ln_q", width, norm_bias, "vision"),
        *linear("merger.mlp.*", merged, merged, "vision", True),
        *linear("merger.mlp.*", merged, out, "vision", True),
    )


def qwen3(c: Config) -> Tensors:
    """Qwen3-VL and Qwen3.5: learned positions, and a merger for each of ``deepstack_visual_indexes``."""
    width, out = c.hidden, c.size("out_hidden_size")
    merged = width * c.size("spatial_merge_size", 2) ** 2
    inner = c.size("intermediate_size")
    names = ("linear_fc1", "linear_fc2")
    layer = (
        *norms(("norm1", "norm2"), width),
        *attention(width, True),
        *within("mlp", mlp(names, width, inner)),
    )
    joined = (
        *linear("linear_fc1", merged, merged, "vision", True),
        *linear("linear_fc2", merged, out, "vision", True),
    )
    taps = len(c.ints("deepstack_visual_indexes"))
    return (
        *patch_embedding(c, width, True),
        *loose("pos_embed.weight", (c.size("num_position_embeddings"), width), "vision"),
        *within("blocks.*", layer, c.size("depth")),
        *within("merger", (*norm("norm", width, True), *joined)),
        *(within("deepstack_merger_list.*", (*norm("norm", merged, True), *joined), taps) if taps else ()),
    )


def glm4v(c: Config) -> Tensors:
    """GLM-4V: its MLP is as wide as the language model, its merger as ``intermediate_size``."""
    width, out, merge = c.hidden, c.size("out_hidden_size"), c.size("spatial_merge_size", 2)
    layer = (
        *norms(("norm1", "norm2"), width, False),
        *attention(width, c.flag("attention_bias")),
        *within("mlp", gated(width, out)),
    )
    merger = (
        *linear("proj", out, out, "vision"),
        *norm("post_projection_norm", out, True),
        *gated(out, c.size("intermediate_size")),
    )
    return (
        *loose("embeddings.position_embedding.weight", (patches(c), width), "vision"),
        *patch_embedding(c, width, True),
        *within("blocks.*", layer, c.size("depth")),
        *within("merger", merger),
        *norms(("post_conv_layernorm", "post_layernorm"), width, False),
        *conv("downsample", (out, width, merge, merge), "vision", True),
    )


def near(c: Config) -> Grid:
    """Images keep their shape, in whole tokens: models/qwen2_vl/image_processing_qwen2_vl.py, smart_resize@5.16.1."""
    return Grid("near", c.size("patch_size"), c.size("spatial_merge_size", 2), most=_MOST_PIXELS)


def windowed(c: Config) -> Grid:
    """The same, seen in windows: models/qwen2_5_vl/configuration_qwen2_5_vl.py, Qwen2_5_VLVisionConfig@5.16.1."""
    found, key = near(c), "fullatt_block_indexes"
    whole = tuple(c.ints(key)) if isinstance(c.get(key), list) else (7, 15, 23, 31)
    return replace(found, window=c.size("window_size", 112) // found.merge // found.patch, whole=whole)


LAYERS = {
    qwen2: Layers(
        "blocks",
        "layer",
        near,
        (4, 4, 4, 4),
        LayerVariant(joined_output=True, activation=QUICK_GELU, activation_gradient=QUICK_GELU_GRADIENT),
        width="embed_dim",
        frames=2,
        bare=True,
    ),
    qwen2_5: Layers("blocks", "rms", windowed, (4, 4, 4, 4), _COPIED, frames=2),
    qwen3: Layers("blocks", "layer", near, (4, 4, 4, 4), _COPIED, frames=2, hooked=False),
    glm4v: Layers("blocks", "rms", near, (4, 4, 4, 4), _COPIED, frames=2, hooked=False),
}
"""The layers of those towers that transformers' modules confirm, by what builds their tensors."""
