"""A vision tower: the encoder, what joins it to the decoder, and the features in their places among the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from advisor.allocations.autograd.autograd import Tape, Tensor
from advisor.allocations.autograd.checkpoint import PASSES
from advisor.allocations.autograd.operations import FULL, HALF, alike, all_joined, autocast, cast, laid_out_again
from advisor.allocations.autograd.places import real_images
from advisor.record import record, replace

if TYPE_CHECKING:
    from advisor.allocations.shared import Batch
    from advisor.allocations.vision.encoders import Encode, Patches

Embedded = tuple["Tensor", tuple["Tensor", ...], tuple["Tensor", ...]]
"""What the first layer reads; tables of positions; and what has a name while the encoder runs."""
Embed = Callable[["Tape", "VisionTower", "Batch"], Embedded]
"""From pixels to what the first layer reads."""
Positions = Callable[["Tape", "Batch"], "Tensor"]
"""The positions of a micro-step's rows."""
Hold = Literal["", "pixels", "real images"]
After = Callable[["Tape", "Tensor"], "Tensor"]
"""One of the operations between the last layer and the projector."""
Join = Callable[["Tape", "VisionTower", "Tensor"], "Tensor | list[Tensor]"]
"""From what the last layer returns to features as wide as the decoder, of all images or of each."""


@record(eq=False)
class VisionTower:
    """An encoder over the images of a micro-step, and its projector."""

    patches: Patches
    images: int
    """Sequences of patches, which may lie in one row."""
    hidden: int
    pixels: int
    """Numbers that the processor returns for a micro-step."""
    convolved: int
    """Patches that the convolution makes of them."""
    convolution: tuple[Tensor, Tensor | None]
    """The weight and the bias that make patches of pixels."""
    hold: Hold
    """What is made of the pixels first, and has a name until the features are there."""
    embed: Embed
    layers: Sequence[Encode]
    after: tuple[After, ...]
    """What ends the encoder: its last norm."""
    join: Join
    asks_for_gradients: bool
    """Whether what the patches become is made to need a gradient: ``enable_input_require_grads``."""
    by_image: bool = False
    """Whether features are split by image and joined again; outputs of all layers are kept until then, unless patches
    know their places."""
    sides: tuple[int, int] = (0, 0)
    """Patches along the edges of an image: height and width, where they know their places."""
    positions: Positions | None = None
    """What counts the positions of words and images, where these have axes of their own."""
    strided: bool = False
    """Whether the stream lies channel by channel, as a convolution returns it."""
    index_put: bool = False
    """Whether features are taken by their indices, and chosen among the words: SmolVLMModel.inputs_merger@5.16.1."""
    mask_checks: int = 1
    """How often the decoder checks whether the mask leaves anything out, once it has counted positions."""
    bidirectional_image_attention: bool = False
    """Whether tokens of an image see each other: Gemma3Model.forward@5.16.1."""

    @property
    def knows_places(self) -> bool:
        """Whether patches know their places in an image.

        Then what joins is part of the encoder, and names keep tables of places, not what the encoder began with; places
        of videos are looked for, too; and the model does not return its features.
        """
        return self.positions is not None

    def features(self, tape: Tape, batch: Batch, width: int) -> Tensor:
        """One vector for each place of an image among the words, in the words' precision."""
        features = self.encoded(tape, batch)
        if isinstance(features, list):
            return cast(tape, all_joined(tape, features), width)
        joined = alike(tape, features) if self.by_image else features
        return cast(tape, joined, width)

    def encoded(self, tape: Tape, batch: Batch) -> Tensor | list[Tensor]:
        """What the projector returns."""
        pixels = self.held(tape)
        hidden, tables, kept = self.embed(tape, self, batch)
        patches = replace(self.patches, tables=tables)
        states = [] if self.knows_places else [hidden]
        keeps_all = self.by_image and not self.knows_places
        pass_through = PASSES[batch.checkpointing]
        for layer in self.layers:
            hidden = pass_through(tape, partial(self.passed, tape, batch, patches, layer), hidden)
            if keeps_all:
                states.append(hidden)
        for after in self.after:
            hidden = after(tape, hidden)
        lasting = (kept, tables) if self.knows_places else ()
        del kept, tables, patches
        if not keeps_all:
            states.clear()
        features = self.join(tape, self, hidden)
        del pixels, hidden, lasting
        states.clear()
        return features

    def passed(self, tape: Tape, batch: Batch, patches: Patches, layer: Encode, x: Tensor) -> Tensor:
        """A layer over its input: a reentrant checkpoint keeps the gradient of that laid out as it is."""
        if not self.transposes(batch):
            return layer(tape, patches, x)
        if layer is self.layers[-1]:
            return layer(tape, patches, laid_out_again(tape, x))
        return layer(tape, replace(patches, transposed=True), x)

    def transposes(self, batch: Batch) -> bool:
        """Whether gradients lie channel by channel, too, from the last layer's input on."""
        return self.strided and batch.checkpointing == "reentrant"

    def cast_pixels(self, tape: Tape) -> Tensor | None:
        """Pixels in the precision of the weight; none, where that is theirs."""
        width = self.convolution[0].width
        return None if width == FULL else tape.new(self.pixels, width)

    def held(self, tape: Tape) -> list[Tensor | None]:
        """What has a name until the features are there."""
        match self.hold:
            case "":
                return []
            case "pixels":
                return [self.cast_pixels(tape)]
            case "real images":
                return list(real_images(tape, self.pixels, self.images, self.convolved, self.convolution[0].width))

    def patched(self, tape: Tape) -> Tensor:
        """What the frozen convolution makes of pixels: it asks for a gradient, not its inputs do."""
        result = self.convolve(tape)
        result.trained = self.asks_for_gradients
        return result

    def convolve(self, tape: Tape) -> Tensor:
        """The convolution of pixels, by a frozen weight."""
        copy = None if self.hold else self.cast_pixels(tape)
        wide = self.convolution[0].width == FULL
        halves = [autocast(tape, one) for one in reversed(self.convolution) if one is not None]
        first = tape.new(self.pixels, HALF) if wide else None
        result = tape.new(self.convolved * self.hidden, HALF)
        del copy, first, halves
        return result
