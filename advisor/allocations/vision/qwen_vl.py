"""The encoders whose patches know their places, from the weights of a model: they carry their own mergers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.layers.layers import Gated, PlainFeed
from advisor.allocations.vision.encoders import Encoding
from advisor.allocations.vision.interpolated import Downsampling, GatedMerger, InterpolatedPositions
from advisor.allocations.vision.named_weights import NamedWeights, Parts
from advisor.allocations.vision.projectors import TwoLinears
from advisor.allocations.vision.visual import PatchMerger, RotaryAttention, RotaryTower, quick_gelu
from advisor.allocations.vision.windows import InOrder, InWindows

if TYPE_CHECKING:
    from advisor.allocations.vision.towers import Towers
    from advisor.allocations.vision.vision_tower import After, Embed, Join
    from advisor.models.tower import Tower

VISUAL = "model.visual."


def qwen2_vl(towers: Towers, tower: Tower) -> Parts:
    """models/qwen2_vl/modeling_qwen2_vl.py, Qwen2VisionTransformerPretrainedModel@5.16.1."""
    around = NamedWeights(towers, VISUAL)
    join = PatchMerger(around.norm("merger.ln_q"), _in_merger(around))
    layer = partial(_qwen2_vl_layer, around, tower)
    return _by_place(around, RotaryTower(head_dim(tower)), layer, join)


def _by_place(
    around: NamedWeights, embed: Embed, layer: Callable[[int], Encoding], join: Join, after: tuple[After, ...] = ()
) -> Parts:
    """An encoder whose patches know their places, with what joins them to the decoder inside."""
    convolution = around.convolution("patch_embed.proj")
    return Parts(convolution, embed, layer, join, after, hold="pixels", by_image=True, places=True)


def _in_merger(around: NamedWeights) -> TwoLinears:
    """The linears of a merger."""
    return TwoLinears(around.linear("merger.mlp.0"), around.linear("merger.mlp.2"))


def head_dim(tower: Tower) -> int:
    """Elements of a head."""
    assert tower.block.attention is not None
    return tower.block.attention.head_dim


def _qwen2_vl_layer(around: NamedWeights, tower: Tower, index: int) -> Encoding:
    """models/qwen2_vl/modeling_qwen2_vl.py, Qwen2VLVisionBlock@5.16.1."""
    here = around.below(f"blocks.{index}")
    feed = PlainFeed(here.linear("mlp.fc1"), here.linear("mlp.fc2"), quick_gelu)
    return Encoding(turning(here, tower), feed, (here.norm("norm1"), here.norm("norm2")))


def turning(here: NamedWeights, tower: Tower, *, windowed: bool = False) -> RotaryAttention:
    """The attention of a layer."""
    assert tower.block.attention is not None
    return RotaryAttention(tower.block.attention, here.linear("attn.qkv"), here.linear("attn.proj"), windowed)


def qwen2_5_vl(towers: Towers, tower: Tower) -> Parts:
    """models/qwen2_5_vl/modeling_qwen2_5_vl.py, Qwen2_5_VisionTransformerPretrainedModel@5.16.1."""
    around, merged = NamedWeights(towers, VISUAL), tower.grid.merge**2
    join = InOrder(PatchMerger(around.rms("merger.ln_q"), _in_merger(around)), merged)
    layer = partial(_qwen2_5_vl_layer, around, tower)
    return _by_place(around, InWindows(RotaryTower(head_dim(tower)), merged), layer, join)


def _qwen2_5_vl_layer(around: NamedWeights, tower: Tower, index: int) -> Encoding:
    """models/qwen2_5_vl/modeling_qwen2_5_vl.py, Qwen2_5_VLVisionBlock; models/glm4v, Glm4vVisionBlock@5.16.1."""
    here = around.below(f"blocks.{index}")
    mixer = turning(here, tower, windowed=tower.grid.window > 0 and index not in tower.grid.whole)
    gate, up, down = (here.linear(f"mlp.{name}") for name in ("gate_proj", "up_proj", "down_proj"))
    return Encoding(mixer, Gated(gate, up, down), (here.rms("norm1"), here.rms("norm2")))


def glm4v(towers: Towers, tower: Tower) -> Parts:
    """models/glm4v/modeling_glm4v.py, Glm4vVisionModel@5.16.1."""
    around = NamedWeights(towers, VISUAL)
    after = around.below("merger")
    table = around.weight("embeddings.position_embedding.weight")
    embed = InterpolatedPositions(RotaryTower(head_dim(tower)), around.rms("post_conv_layernorm"), table)
    gate, up, down = (after.linear(name) for name in ("gate_proj", "up_proj", "down_proj"))
    first = after.linear("proj")
    join = GatedMerger(first, after.norm("post_projection_norm"), Gated(gate, up, down))
    ends = around.rms("post_layernorm"), Downsampling(*around.convolution("downsample"), first.n_in)
    return _by_place(around, embed, partial(_qwen2_5_vl_layer, around, tower), join, ends)
