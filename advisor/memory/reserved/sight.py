"""How a model sees: its encoder, what joins it to the decoder, and the features in their places among the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from advisor.memory.reserved.autograd import Node, Tape, Tensor, node_for
from advisor.memory.reserved.checkpoint import PASSES
from advisor.memory.reserved.operations import FULL, HALF, LONG, alike, all_joined, autocast, cast, laid_out_again
from advisor.record import record, replace

if TYPE_CHECKING:
    from advisor.memory.reserved.encoders import Encode, Patches
    from advisor.memory.reserved.mixer import Batch
    from advisor.memory.reserved.norms import Norm

Embedded = tuple["Tensor", tuple["Tensor", ...], tuple["Tensor", ...]]
"""What the first layer reads; tables of positions; and what has a name while the encoder runs."""
Embed = Callable[["Tape", "Sight", "Batch"], Embedded]
"""From pixels to what the first layer reads."""
Join = Callable[["Tape", "Sight", "Tensor"], "Tensor | list[Tensor]"]
"""From what the last layer returns to features as wide as the decoder, of all images or of each."""


@record(eq=False)
class Sight:
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
    holds_pixels: bool
    """Whether pixels in the weights' precision have a name until the features are there."""
    embed: Embed
    layers: Sequence[Encode]
    after: Norm | None
    """The norm that ends the encoder."""
    join: Join
    asks_for_gradients: bool
    """Whether what the patches become is made to need a gradient: ``enable_input_require_grads``."""
    by_image: bool = False
    """Whether features are split by image and joined again, and outputs of all layers are kept until then."""
    strided: bool = False
    """Whether the stream lies channel by channel, as a convolution returns it."""
    looks: int = 1
    """How often the decoder looks at the mask after it has counted positions."""
    in_blocks: bool = False
    """Whether tokens of an image see each other: Gemma3Model.forward@5.16.1."""

    def features(self, tape: Tape, batch: Batch, width: int) -> Tensor:
        """One vector for each place of an image among the words, in the words' precision."""
        features = self.encoded(tape, batch)
        if isinstance(features, list):
            return cast(tape, all_joined(tape, features), width)
        joined = alike(tape, features) if self.by_image else features
        return cast(tape, joined, width)

    def encoded(self, tape: Tape, batch: Batch) -> Tensor | list[Tensor]:
        """What the projector returns."""
        pixels = self.cast_pixels(tape) if self.holds_pixels else None
        hidden, tables, kept = self.embed(tape, self, batch)
        patches = replace(self.patches, tables=tables)
        states = [hidden]
        pass_through = PASSES[batch.checkpointing]
        for layer in self.layers:
            hidden = pass_through(tape, partial(self.passed, tape, batch, patches, layer), hidden)
            if self.by_image:
                states.append(hidden)
        if self.after is not None:
            hidden = self.after(tape, hidden)
        del kept, tables, patches
        if not self.by_image:
            states.clear()
        features = self.join(tape, self, hidden)
        del pixels, hidden
        states.clear()
        return features

    def passed(self, tape: Tape, batch: Batch, patches: Patches, layer: Encode, x: Tensor) -> Tensor:
        """A layer over its input: a reentrant checkpoint keeps the gradient of that laid out as it is."""
        if not self.turns(batch):
            return layer(tape, patches, x)
        if layer is self.layers[-1]:
            return layer(tape, patches, laid_out_again(tape, x))
        return layer(tape, replace(patches, turned=True), x)

    def turns(self, batch: Batch) -> bool:
        """Whether gradients lie channel by channel, too, from the last layer's input on."""
        return self.strided and batch.checkpointing == "reentrant"

    def cast_pixels(self, tape: Tape) -> Tensor | None:
        """Pixels in the precision of the weight; none, where that is theirs."""
        width = self.convolution[0].width
        return None if width == FULL else tape.new(self.pixels, width)

    def patched(self, tape: Tape) -> Tensor:
        """What the frozen convolution makes of pixels: it asks for a gradient, not its inputs do."""
        copy = None if self.holds_pixels else self.cast_pixels(tape)
        wide = self.convolution[0].width == FULL
        halves = [autocast(tape, one) for one in reversed(self.convolution) if one is not None]
        first = tape.new(self.pixels, HALF) if wide else None
        result = tape.new(self.convolved * self.hidden, HALF)
        del copy, first, halves
        result.trained = self.asks_for_gradients
        return result


def placed(tape: Tape, inputs: Tensor, features: Tensor, places: Tensor) -> Tensor:
    """``masked_scatter`` on CUDA: places are counted in 64 bits, and in backward found by their three indices.

    aten/src/ATen/native/cuda/IndexKernel.cpp, masked_scatter__cuda, masked_select_cuda; Nonzero.cu@2.13.0;
    FunctionsManual.cpp, masked_scatter_backward.
    """

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        outside = tape.new(count, width) if node.needs[0] else None
        if not node.needs[1]:
            return outside, None
        whole = tape.new(count, 1)
        indices = tape.new(3 * size, LONG)
        del whole
        inside = tape.new(size, width)
        del indices
        return outside, inside

    count, width, size = inputs.count, inputs.width, features.count
    node = node_for(tape, back, inputs, features)
    result = tape.new(count, width)
    sums, whole = tape.new(count, LONG), tape.new(count, 1)
    del sums, whole
    if node is not None:
        node.keep(tape, places)
    result.node = node
    return result
