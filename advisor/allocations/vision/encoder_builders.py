"""The encoders and projectors that tapes have, from the weights of a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.autograd.linears import Plain
from advisor.allocations.autograd.norms import Norm
from advisor.allocations.layers.layers import Gated, PlainFeed
from advisor.allocations.vision.embedding import Rotating, WithClass, WithFound, WithPositions, WithResized
from advisor.allocations.vision.encoders import Encoding, Mixing, ScaledEncoding
from advisor.allocations.vision.named_weights import NamedWeights, Parts
from advisor.allocations.vision.projectors import Merged, Pooled, Projected, Shuffled, TwoLinears, Unshuffled
from advisor.allocations.vision.qwen_vl import glm4v, qwen2_5_vl, qwen2_vl

if TYPE_CHECKING:
    from advisor.allocations.vision.towers import Towers
    from advisor.allocations.vision.vision_tower import Join
    from advisor.models.tower import Tower

VISION = "model.vision_tower."
PROJECTOR = "model.multi_modal_projector."


def internvl(towers: Towers, tower: Tower) -> Parts:
    """models/internvl/modeling_internvl.py, InternVLVisionModel, InternVLMultiModalProjector@5.16.1."""
    around, after = NamedWeights(towers, VISION), NamedWeights(towers, PROJECTOR)
    embed = WithClass(around.weight("embeddings.cls_token"), around.weight("embeddings.position_embeddings"))
    join = Shuffled(after.norm("layer_norm"), after.linear("linear_1"), after.linear("linear_2"))
    convolution = around.convolution("embeddings.patch_embeddings.projection")
    return Parts(convolution, embed, partial(_internvl_layer, around, tower), join, hold="pixels")


def _internvl_layer(around: NamedWeights, tower: Tower, index: int) -> ScaledEncoding:
    """models/internvl/modeling_internvl.py, InternVLVisionLayer@5.16.1."""
    here = around.below(f"encoder.layer.{index}")
    attention = tower.block.attention
    assert attention is not None
    inside = (here.linear(f"attention.{name}") for name in ("q_proj", "k_proj", "v_proj", "projection_layer"))
    return ScaledEncoding(
        Mixing(attention, *inside),
        PlainFeed(here.linear("mlp.fc1"), here.linear("mlp.fc2")),
        (here.norm("layernorm_before"), here.norm("layernorm_after")),
        (here.weight("lambda_1"), here.weight("lambda_2")),
    )


def gemma3(towers: Towers, tower: Tower) -> Parts:
    """models/gemma3/modeling_gemma3.py, Gemma3Model.get_image_features@5.16.1."""
    around, after = NamedWeights(towers, VISION), NamedWeights(towers, PROJECTOR)
    projection = after.weight("mm_input_projection_weight")
    embed = WithPositions(around.weight("embeddings.position_embedding.weight"))
    norm = Norm("offset rms", after.weight("mm_soft_emb_norm.weight"))
    join = Pooled(norm, projection, projection.count // tower.block.hidden, tower.grid.of_side() // tower.grid.merge**2)
    layer = partial(_siglip_layer, around, tower, True)
    after = around.norm("post_layernorm", strided=True, turns=True)
    return Parts(around.convolution("embeddings.patch_embedding"), embed, layer, join, (after,), strided=True)


def _siglip_layer(around: NamedWeights, tower: Tower, strided: bool, index: int) -> Encoding:
    """models/siglip/modeling_siglip.py, SiglipEncoderLayer@5.16.1.

    What comes out of a convolution lies channel by channel, and so does all that is added to it.
    """
    here = around.below(f"encoder.layers.{index}")
    attention = tower.block.attention
    assert attention is not None
    inside = (here.linear(f"self_attn.{name}") for name in ("q_proj", "k_proj", "v_proj", "out_proj"))
    return Encoding(
        Mixing(attention, *inside),
        PlainFeed(here.linear("mlp.fc1"), here.linear("mlp.fc2")),
        (here.norm("layer_norm1", strided=strided), here.norm("layer_norm2", strided=strided)),
    )


def smolvlm(towers: Towers, tower: Tower) -> Parts:
    """models/smolvlm/modeling_smolvlm.py, SmolVLMModel.get_image_features@5.16.1."""
    around = NamedWeights(towers, "model.vision_model.")
    join = Projected(NamedWeights(towers, "model.connector.modality_projection.").linear("proj"))
    layer = partial(_siglip_layer, around, tower, True)
    after, convolution = around.norm("post_layernorm", strided=True), around.convolution("embeddings.patch_embedding")
    return Parts(convolution, WithFound(), layer, join, (after,), hold="real images", strided=True)


def lfm2_vl(towers: Towers, tower: Tower) -> Parts:
    """models/lfm2_vl/modeling_lfm2_vl.py, Lfm2VlModel.get_image_features@5.16.1, with SigLIP 2."""
    around, after = NamedWeights(towers, VISION), NamedWeights(towers, PROJECTOR)
    first = around.linear("embeddings.patch_embedding")
    assert isinstance(first, Plain), "coverage.has_taped_encoder"
    both = TwoLinears(after.linear("linear_1"), after.linear("linear_2"))
    join = Unshuffled(after.norm("layer_norm", strided=True), both)
    layer = partial(_siglip_layer, around, tower, False)
    return Parts((first.weight, first.bias), WithResized(), layer, join, (around.norm("post_layernorm"),))


def llava(towers: Towers, tower: Tower) -> Parts:
    """models/llava/modeling_llava.py, LlavaModel.get_image_features@5.16.1, with Pixtral's encoder."""
    after = NamedWeights(towers, PROJECTOR)
    return pixtral(towers, tower, TwoLinears(after.linear("linear_1"), after.linear("linear_2")))


def mistral3(towers: Towers, tower: Tower) -> Parts:
    """models/mistral3/modeling_mistral3.py, Mistral3Model.get_image_features@5.16.1."""
    after = NamedWeights(towers, PROJECTOR)
    both = TwoLinears(after.linear("linear_1"), after.linear("linear_2"))
    return pixtral(towers, tower, Merged(after.rms("norm"), after.linear("patch_merger.merging_layer"), both))


def pixtral(towers: Towers, tower: Tower, join: Join) -> Parts:
    """models/pixtral/modeling_pixtral.py, PixtralVisionModel@5.16.1."""
    around = NamedWeights(towers, VISION)
    assert tower.block.attention is not None
    embed = Rotating(around.rms("ln_pre"), tower.block.attention.head_dim)
    layer = partial(_pixtral_layer, around, tower)
    return Parts(around.convolution("patch_conv"), embed, layer, join, by_image=True)


def _pixtral_layer(around: NamedWeights, tower: Tower, index: int) -> Encoding:
    """models/pixtral/modeling_pixtral.py, PixtralAttentionLayer@5.16.1."""
    here = around.below(f"transformer.layers.{index}")
    attention = tower.block.attention
    assert attention is not None
    inside = (here.linear(f"attention.{name}") for name in ("q_proj", "k_proj", "v_proj", "o_proj"))
    gate, up, down = (here.linear(f"feed_forward.{name}") for name in ("gate_proj", "up_proj", "down_proj"))
    norms = here.rms("attention_norm"), here.rms("ffn_norm")
    return Encoding(Mixing(attention, *inside), Gated(gate, up, down), norms)


ENCODER_BUILDERS: dict[str, tuple[str, Callable[[Towers, Tower], Parts]]] = {
    "pooled": ("embeddings.position_embedding.weight", gemma3),
    "shuffled": ("embeddings.cls_token", internvl),
    "unshuffled": ("embeddings.patch_embedding.weight", lfm2_vl),
    "two linears": ("patch_conv.weight", llava),
    "merged": ("patch_conv.weight", mistral3),
    "by place": ("merger.ln_q.bias", qwen2_vl),
    "in windows": ("merger.ln_q.weight", qwen2_5_vl),
    "downsampled": ("downsample.weight", glm4v),
    "projected": ("embeddings.position_embedding.weight", smolvlm),
}
"""By ``vision_tower`` of a family: a weight by which its encoder is known, and how it is used."""
