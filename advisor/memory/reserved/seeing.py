"""Run -> how its model sees: the encoders and projectors that tapes have, by the type of the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from advisor.memory.reserved.encoders import Encoding, Mixing, Patches, ScaledEncoding
from advisor.memory.reserved.layers import Gated, Plain
from advisor.memory.reserved.linears import Plain as Weighted
from advisor.memory.reserved.norms import Norm
from advisor.memory.reserved.operations import FULL
from advisor.memory.reserved.projectors import (
    Merged,
    Pooled,
    Projected,
    Rotating,
    Shuffled,
    TwoLinears,
    Unshuffled,
    WithClass,
    WithFound,
    WithPositions,
    WithResized,
)
from advisor.memory.reserved.sight import Sight
from advisor.memory.towers import at_tower, keeps, sees
from advisor.record import record

if TYPE_CHECKING:
    from advisor.memory.reserved.autograd import Tensor as Memory
    from advisor.memory.reserved.encoders import Encode
    from advisor.memory.reserved.linears import Linear
    from advisor.memory.reserved.sight import Embed, Hold, Join
    from advisor.memory.reserved.towers import Towers
    from advisor.models import Architecture
    from advisor.models.tower import Tower
    from advisor.run import Run

VISION = "model.vision_tower."
PROJECTOR = "model.multi_modal_projector."


class Within:
    """The weights below one name."""

    def __init__(self, towers: Towers, prefix: str) -> None:
        self.towers, self.prefix = towers, prefix

    def linear(self, name: str) -> Linear:
        """A linear."""
        return self.towers.linears[self.prefix + name]

    def weight(self, name: str) -> Memory:
        """Another weight."""
        return self.towers.weights[self.prefix + name]

    def convolution(self, name: str) -> Convolution:
        """A convolution's weight, and its bias, if it has one."""
        return self.weight(f"{name}.weight"), self.towers.weights.get(f"{self.prefix}{name}.bias")

    def norm(self, name: str, *, strided: bool = False, turns: bool = False) -> Norm:
        """A layer norm."""
        weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return Norm("layer", weight, bias, strided=strided, turns=turns)

    def rms(self, name: str) -> Norm:
        """An RMS norm like Llama's."""
        return Norm("rms", self.weight(f"{name}.weight"))

    def below(self, name: str) -> Within:
        """The weights below a name in it."""
        return Within(self.towers, f"{self.prefix}{name}.")


Convolution = tuple["Memory", "Memory | None"]


@record(eq=False)
class Parts:
    """What comes before the layers, the layer of a number, and what comes after."""

    convolution: Convolution
    embed: Embed
    layer: Callable[[int], Encode]
    join: Join
    after: Norm | None = None
    hold: Hold = ""
    by_image: bool = False
    strided: bool = False


def sight_of(run: Run, model: Architecture, towers: Towers) -> Sight | None:
    """How a run's model sees; none, where it is given no images."""
    if not (sees(run) and is_known(model)):
        return None
    tower = model.towers[0]
    inner = at_tower(run, tower)
    rows, length = inner.micro_batch_size, inner.sequence_len
    _, build = SIGHTS[model.model_type]
    parts = build(towers, tower)
    return Sight(
        Patches(1, rows * length) if parts.by_image else Patches(rows, length),
        rows,
        tower.block.hidden,
        pixels_of(run, tower),
        rows * (length - tower.grid.extra),
        parts.convolution,
        parts.hold,
        parts.embed,
        [parts.layer(index) for index in range(tower.block.count)],
        parts.after,
        parts.join,
        asks_for_gradients=keeps(run, model, tower),
        by_image=parts.by_image,
        strided=parts.strided,
        looks={"gemma3": 0, "lfm2_vl": 2}.get(model.model_type, 1),
        by_index=model.model_type == "smolvlm",
        in_blocks=model.model_type == "gemma3",
    )


def columns_of(model: Architecture) -> int:
    """Tensors of as many whole numbers as there are tokens: words, mask, labels, and what kind of token each is."""
    return 4 if model.model_type == "gemma3" else 3


def inputs_of(run: Run, model: Architecture) -> tuple[int, ...]:
    """Bytes of what else the processor returns for a micro-step: pixels in fp32, and masks of patches or pixels."""
    pixels = [pixels_of(run, tower) for tower in model.towers]
    match model.model_type:
        case "lfm2_vl":
            masks = [at_tower(run, tower).tokens for tower in model.towers]
        case "smolvlm":
            masks = [count // 3 for count in pixels]
        case _:
            masks = []
    return tuple(FULL * count for count in (*pixels, *masks))


def pixels_of(run: Run, tower: Tower) -> int:
    """Numbers of the pixels of a micro-step."""
    inner = at_tower(run, tower)
    return tower.entry * inner.micro_batch_size * (inner.sequence_len - tower.grid.extra)


def internvl(towers: Towers, tower: Tower) -> Parts:
    """models/internvl/modeling_internvl.py, InternVLVisionModel, InternVLMultiModalProjector@5.16.1."""
    around, after = Within(towers, VISION), Within(towers, PROJECTOR)
    embed = WithClass(around.weight("embeddings.cls_token"), around.weight("embeddings.position_embeddings"))
    join = Shuffled(after.norm("layer_norm"), after.linear("linear_1"), after.linear("linear_2"))
    convolution = around.convolution("embeddings.patch_embeddings.projection")
    return Parts(convolution, embed, partial(internvl_layer, around, tower), join, hold="pixels")


def internvl_layer(around: Within, tower: Tower, index: int) -> ScaledEncoding:
    """models/internvl/modeling_internvl.py, InternVLVisionLayer@5.16.1."""
    here = around.below(f"encoder.layer.{index}")
    attention = tower.block.attention
    assert attention is not None
    inside = (here.linear(f"attention.{name}") for name in ("q_proj", "k_proj", "v_proj", "projection_layer"))
    return ScaledEncoding(
        Mixing(attention, *inside),
        Plain(here.linear("mlp.fc1"), here.linear("mlp.fc2")),
        (here.norm("layernorm_before"), here.norm("layernorm_after")),
        (here.weight("lambda_1"), here.weight("lambda_2")),
    )


def gemma3(towers: Towers, tower: Tower) -> Parts:
    """models/gemma3/modeling_gemma3.py, Gemma3Model.get_image_features@5.16.1."""
    around, after = Within(towers, VISION), Within(towers, PROJECTOR)
    projection = after.weight("mm_input_projection_weight")
    embed = WithPositions(around.weight("embeddings.position_embedding.weight"))
    norm = Norm("offset rms", after.weight("mm_soft_emb_norm.weight"))
    join = Pooled(norm, projection, projection.count // tower.block.hidden, tower.grid.of_side() // tower.grid.merge**2)
    layer = partial(siglip_layer, around, tower, True)
    after = around.norm("post_layernorm", strided=True, turns=True)
    return Parts(around.convolution("embeddings.patch_embedding"), embed, layer, join, after, strided=True)


def siglip_layer(around: Within, tower: Tower, strided: bool, index: int) -> Encoding:
    """models/siglip/modeling_siglip.py, SiglipEncoderLayer@5.16.1.

    What comes out of a convolution lies channel by channel, and so does all that is added to it.
    """
    here = around.below(f"encoder.layers.{index}")
    attention = tower.block.attention
    assert attention is not None
    inside = (here.linear(f"self_attn.{name}") for name in ("q_proj", "k_proj", "v_proj", "out_proj"))
    return Encoding(
        Mixing(attention, *inside),
        Plain(here.linear("mlp.fc1"), here.linear("mlp.fc2")),
        (here.norm("layer_norm1", strided=strided), here.norm("layer_norm2", strided=strided)),
    )


def smolvlm(towers: Towers, tower: Tower) -> Parts:
    """models/smolvlm/modeling_smolvlm.py, SmolVLMModel.get_image_features@5.16.1."""
    around = Within(towers, "model.vision_model.")
    join = Projected(Within(towers, "model.connector.modality_projection.").linear("proj"))
    layer = partial(siglip_layer, around, tower, True)
    after, convolution = around.norm("post_layernorm", strided=True), around.convolution("embeddings.patch_embedding")
    return Parts(convolution, WithFound(), layer, join, after, hold="real images", strided=True)


def lfm2_vl(towers: Towers, tower: Tower) -> Parts:
    """models/lfm2_vl/modeling_lfm2_vl.py, Lfm2VlModel.get_image_features@5.16.1, with SigLIP 2."""
    around, after = Within(towers, VISION), Within(towers, PROJECTOR)
    first = around.linear("embeddings.patch_embedding")
    assert isinstance(first, Weighted), "coverage.towers_see"
    both = TwoLinears(after.linear("linear_1"), after.linear("linear_2"))
    join = Unshuffled(after.norm("layer_norm", strided=True), both)
    layer = partial(siglip_layer, around, tower, False)
    return Parts((first.weight, first.bias), WithResized(), layer, join, around.norm("post_layernorm"))


def llava(towers: Towers, tower: Tower) -> Parts:
    """models/llava/modeling_llava.py, LlavaModel.get_image_features@5.16.1, with Pixtral's encoder."""
    after = Within(towers, PROJECTOR)
    return pixtral(towers, tower, TwoLinears(after.linear("linear_1"), after.linear("linear_2")))


def mistral3(towers: Towers, tower: Tower) -> Parts:
    """models/mistral3/modeling_mistral3.py, Mistral3Model.get_image_features@5.16.1."""
    after = Within(towers, PROJECTOR)
    both = TwoLinears(after.linear("linear_1"), after.linear("linear_2"))
    return pixtral(towers, tower, Merged(after.rms("norm"), after.linear("patch_merger.merging_layer"), both))


def pixtral(towers: Towers, tower: Tower, join: Join) -> Parts:
    """models/pixtral/modeling_pixtral.py, PixtralVisionModel@5.16.1."""
    around = Within(towers, VISION)
    assert tower.block.attention is not None
    embed = Rotating(around.rms("ln_pre"), tower.block.attention.head_dim)
    return Parts(around.convolution("patch_conv"), embed, partial(pixtral_layer, around, tower), join, by_image=True)


def pixtral_layer(around: Within, tower: Tower, index: int) -> Encoding:
    """models/pixtral/modeling_pixtral.py, PixtralAttentionLayer@5.16.1."""
    here = around.below(f"transformer.layers.{index}")
    attention = tower.block.attention
    assert attention is not None
    inside = (here.linear(f"attention.{name}") for name in ("q_proj", "k_proj", "v_proj", "o_proj"))
    gate, up, down = (here.linear(f"feed_forward.{name}") for name in ("gate_proj", "up_proj", "down_proj"))
    norms = here.rms("attention_norm"), here.rms("ffn_norm")
    return Encoding(Mixing(attention, *inside), Gated(gate, up, down), norms)


SIGHTS: dict[str, tuple[str, Callable[[Towers, Tower], Parts]]] = {
    "gemma3": ("embeddings.position_embedding.weight", gemma3),
    "internvl": ("embeddings.cls_token", internvl),
    "lfm2_vl": ("embeddings.patch_embedding.weight", lfm2_vl),
    "llava": ("patch_conv.weight", llava),
    "mistral3": ("patch_conv.weight", mistral3),
    "smolvlm": ("embeddings.position_embedding.weight", smolvlm),
}
"""By the type of the model: a weight by which its encoder is known, and how it is used."""


def is_known(model: Architecture) -> bool:
    """Whether tapes have how a model sees."""
    named = {tensor.name for tensor in model.tensors}
    marker, _ = SIGHTS.get(model.model_type, ("", None))
    return any(name.endswith("." + marker) for name in named) and len(model.towers) == 1
