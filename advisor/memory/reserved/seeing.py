"""Run -> how its model sees: the encoders and projectors that tapes have, by the type of the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from advisor.memory.reserved.encoders import Mixing, Patches, ScaledEncoding
from advisor.memory.reserved.layers import Plain
from advisor.memory.reserved.norms import Norm
from advisor.memory.reserved.operations import FULL
from advisor.memory.reserved.projectors import Shuffled, WithClass
from advisor.memory.reserved.sight import Sight
from advisor.memory.towers import at_tower, keeps, sees

if TYPE_CHECKING:
    from advisor.memory.reserved.autograd import Tensor as Memory
    from advisor.memory.reserved.linears import Linear
    from advisor.memory.reserved.sight import Embed, Join
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

    def norm(self, name: str) -> Norm:
        """A layer norm."""
        return Norm("layer", self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))

    def below(self, name: str) -> Within:
        """The weights below a name in it."""
        return Within(self.towers, f"{self.prefix}{name}.")


Parts = tuple["Embed", Callable[[int], "ScaledEncoding"], "Join"]
"""What comes before the layers, the layer of a number, and what comes after."""


def sight_of(run: Run, model: Architecture, towers: Towers) -> Sight | None:
    """How a run's model sees; none, where it is given no images."""
    if not sees(run) or model.model_type not in SIGHTS:
        return None
    tower = model.towers[0]
    inner = at_tower(run, tower)
    patches = Patches(inner.micro_batch_size, inner.sequence_len)
    embed, layer, join = SIGHTS[model.model_type](towers, tower)
    return Sight(
        patches,
        tower.block.hidden,
        pixels_of(run, tower),
        embed,
        [layer(index) for index in range(tower.block.count)],
        join,
        asks_for_gradients=keeps(run, model, tower),
    )


def columns_of(model: Architecture) -> int:
    """Tensors of as many whole numbers as there are tokens: words, mask, labels, and what kind of token each is."""
    return 4 if model.model_type == "gemma3" else 3


def inputs_of(run: Run, model: Architecture) -> tuple[int, ...]:
    """Bytes of what else the processor returns for a micro-step: pixels in fp32."""
    return tuple(FULL * pixels_of(run, tower) for tower in model.towers)


def pixels_of(run: Run, tower: Tower) -> int:
    """Numbers of the pixels of a micro-step."""
    inner = at_tower(run, tower)
    return tower.entry * inner.micro_batch_size * (inner.sequence_len - tower.grid.extra)


def internvl(towers: Towers, tower: Tower) -> Parts:
    """models/internvl/modeling_internvl.py, InternVLVisionModel, InternVLMultiModalProjector@5.16.1."""
    around, after = Within(towers, VISION), Within(towers, PROJECTOR)
    embed = WithClass(around.weight("embeddings.cls_token"), around.weight("embeddings.position_embeddings"))
    join = Shuffled(after.norm("layer_norm"), after.linear("linear_1"), after.linear("linear_2"))
    return embed, partial(internvl_layer, around, tower), join


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


SIGHTS: dict[str, Callable[[Towers, Tower], Parts]] = {"internvl": internvl}
"""By the type of the model."""
