"""The weights of a tower by their names, and its parts in the order in which they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from advisor.allocations.autograd.norms import Norm
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.vision.encoders import Encode
    from advisor.allocations.vision.towers import Towers
    from advisor.allocations.vision.vision_tower import After, Embed, Hold, Join

Convolution = tuple["Tensor", "Tensor | None"]


class NamedWeights:
    """The weights below one name."""

    def __init__(self, towers: Towers, prefix: str) -> None:
        self.towers, self.prefix = towers, prefix

    def linear(self, name: str) -> Linear:
        """A linear."""
        return self.towers.linears[self.prefix + name]

    def weight(self, name: str) -> Tensor:
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

    def below(self, name: str) -> NamedWeights:
        """The weights below a name in it."""
        return NamedWeights(self.towers, f"{self.prefix}{name}.")


@record(eq=False)
class Parts:
    """What comes before the layers, the layer of a number, and what comes after."""

    convolution: Convolution
    embed: Embed
    layer: Callable[[int], Encode]
    join: Join
    after: tuple[After, ...] = ()
    hold: Hold = ""
    by_image: bool = False
    places: bool = False
    """Whether patches know their places in an image, and the decoder's positions have three axes."""
    strided: bool = False
