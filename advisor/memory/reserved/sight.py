"""How a model sees: its encoder, what joins it to the decoder, and the features in their places among the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from advisor.memory.reserved.autograd import Node, Tape, Tensor, node_for
from advisor.memory.reserved.checkpoint import PASSES
from advisor.memory.reserved.operations import HALF, LONG
from advisor.record import record

if TYPE_CHECKING:
    from advisor.memory.reserved.encoders import Encode, Patches
    from advisor.memory.reserved.mixer import Batch

Embed = Callable[["Tape", "Sight"], "Tensor"]
"""From pixels to what the first layer reads."""
Join = Callable[["Tape", "Sight", "Tensor"], "Tensor"]
"""From what the last layer returns to features as wide as the decoder."""


@record(eq=False)
class Sight:
    """An encoder over the images of a micro-step, and its projector."""

    patches: Patches
    hidden: int
    pixels: int
    """Numbers that the processor returns for a micro-step."""
    embed: Embed
    layers: Sequence[Encode]
    join: Join
    asks_for_gradients: bool
    """Whether what the patches become is made to need a gradient: ``enable_input_require_grads``."""

    def features(self, tape: Tape, batch: Batch) -> Tensor:
        """One vector for each place of an image among the words."""
        half = tape.new(self.pixels, HALF)
        hidden = embedded = self.embed(tape, self)
        pass_through = PASSES[batch.checkpointing]
        for layer in self.layers:
            hidden = pass_through(tape, partial(layer, tape, self.patches), hidden)
        del embedded
        features = self.join(tape, self, hidden)
        del half
        return features

    def leaf(self, tape: Tape, count: int) -> Tensor:
        """What a frozen convolution returns."""
        result = tape.new(count, HALF)
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
