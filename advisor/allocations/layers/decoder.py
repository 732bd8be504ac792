"""The model around the decoder layers, as transformers 5.16.1 computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from advisor.allocations.autograd.autograd import node_for
from advisor.allocations.autograd.checkpoint import PASSES
from advisor.allocations.autograd.masks import causal_mask, image_blocks, whether_padded
from advisor.allocations.autograd.operations import FULL, alike, cast, embedded, scaled
from advisor.allocations.autograd.places import chosen, placed
from advisor.allocations.layers.positions import counted, rotary_tables
from advisor.allocations.losses import losses
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Node, Tape, Tensor
    from advisor.allocations.autograd.linears import Plain
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.layers.delta_nets import DeltaNet
    from advisor.allocations.layers.latents import Latent
    from advisor.allocations.layers.mixer import Mixer
    from advisor.allocations.layers.positions import Axes
    from advisor.allocations.shared import Batch, Tables
    from advisor.allocations.vision.vision_tower import VisionTower


Score = Callable[["Tape", "Tensor", "Plain", "Batch"], tuple["Tensor | None", "Tensor"]]
"""What the head reads, the head and the rows, to the logits, if the model returns any, and the loss."""


class AnyLayer(Protocol):
    """A decoder layer."""

    @property
    def mixer(self) -> Mixer | Latent | DeltaNet | None:
        """Its attention."""
        ...

    @property
    def norms(self) -> tuple[Norm, ...]:
        """Its norms, in the order of its modules."""
        ...

    @property
    def kind(self) -> int:
        """Which of the model's tables of positions it reads."""
        ...

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """What the next layer reads."""
        ...


@record(eq=False)
class Model:
    """Weights in the order of ``parameters()``, and the modules that have them."""

    embedding: Tensor
    hidden: int
    layers: Sequence[AnyLayer]
    norm: Norm
    head: Plain
    weights: Sequence[Tensor]
    asks_for_gradients: bool = False
    """Whether the embedding's output is made to need a gradient: ``enable_input_require_grads``."""
    score: Score = losses.plain
    """The head and the loss."""
    compare: Callable[[Tape, Model, Batch], Tensor] | None = None
    """A trainer's own loss, of preferences."""
    hands_out_copies: bool = False
    """Whether DDP, which looks for unused weights, clones what the forward returns: distributed.py, _DDPSink@2.13.0."""
    scales_embedding: Literal["", "inside", "after"] = ""
    """Whether the embedding's output is multiplied by a number, in its own module or after it."""
    fp32_tables: bool = False
    """Whether cosines and sines stay in fp32: Olmo3RotaryEmbedding.forward@5.16.1."""
    windowed: bool = False
    """Whether the mask of attention has a sliding window."""
    rotary_dim: int = 0
    """Elements of a head that are rotated."""
    axes: Axes = ""
    """Whether positions have three axes."""
    kinds: int = 1
    """How many kinds of layers have positions of their own."""
    vision_tower: VisionTower | None = None
    """What encodes the images of a batch."""

    @property
    def trained(self) -> list[Tensor]:
        """The weights that get gradients."""
        return [weight for weight in self.weights if weight.trained]

    def decoded(self, tape: Tape, batch: Batch, seen: list[Tensor] | None = None) -> Tensor:
        """What the head reads; features of images are put where the outputs keep them."""
        inputs = embedded(tape, self.embedding, batch.tokens, self.hidden)
        if inputs.node is not None and batch.ids is not None:
            inputs.node.keep(tape, batch.ids)
        if self.scales_embedding == "inside":
            inputs = scaled(tape, inputs)
        inputs.trained = self.asks_for_gradients and inputs.node is None
        if self.scales_embedding == "after":
            inputs = scaled(tape, inputs)
        inputs, places = self.with_images(tape, batch, inputs, seen)
        positions = self.positions(tape, batch, seen)
        for _ in range(self.vision_tower.mask_checks if self.vision_tower is not None else 0):
            whether_padded(tape, batch.tokens)
        masks = [causal_mask(tape, batch.rows, batch.length, windowed=self.windowed)] if batch.masked else []
        precision = FULL if self.fp32_tables else inputs.width
        tables = [
            rotary_tables(tape, batch, self.rotary_dim, precision, self.axes)
            for _ in range(self.kinds if self.rotary_dim else 0)
        ]
        # Layers get positions of text alone, which are not told apart from others: Qwen2VLTextModel.forward@5.16.1.
        given = None if self.axes in {"apart", "joined"} else positions
        each = [(*both, given or both[0], *masks) for both in tables] or [(positions,) * 3]
        del tables
        pass_through = PASSES[batch.checkpointing]
        hidden = inputs
        for layer in self.layers:
            hidden = pass_through(tape, partial(layer, tape, batch, each[layer.kind]), hidden)
        hidden = self.norm(tape, hidden)
        del places
        return hidden

    def positions(self, tape: Tape, batch: Batch, seen: list[Tensor] | None) -> Tensor:
        """Those of one row, if not each has its own."""
        if self.vision_tower is not None and self.vision_tower.positions is not None and seen is not None:
            return self.vision_tower.positions(tape, batch)
        return counted(tape, batch.length)

    def with_images(
        self, tape: Tape, batch: Batch, inputs: Tensor, seen: list[Tensor] | None
    ) -> tuple[Tensor, list[Tensor]]:
        """What the first layer reads, and what says where the images are in it."""
        if self.vision_tower is None or seen is None:
            return inputs, []
        features = self.vision_tower.features(tape, batch, inputs.width)
        if not self.vision_tower.knows_places:
            seen.append(features)
        if self.vision_tower.index_put:
            return chosen(tape, batch.tokens, inputs, features), []
        places = tape.new(batch.tokens, 1)
        others = [tape.new(batch.tokens, 1)] if self.vision_tower.knows_places else []
        inputs = placed(tape, inputs, features, places)
        tower = self.vision_tower
        blocks = [image_blocks(tape, batch.rows, batch.length)] if tower.bidirectional_image_attention else []
        return inputs, [places, features, *others, *blocks]

    def logits(self, tape: Tape, batch: Batch) -> Tensor:
        """The logits as accelerate hands them on: in fp32."""
        tape.autocast = tape.computes_half
        logits = self.head(tape, ended(tape, self.decoded(tape, batch)))
        tape.autocast = False
        tape.casts.clear()
        return cast(tape, logits, FULL) if tape.computes_half else logits

    def loss(self, tape: Tape, batch: Batch) -> Tensor:
        """The loss of a micro-step; logits come back in fp32 and live until it is returned.

        accelerate/utils/operations.py, ConvertOutputsToFp32@1.13.0.
        """
        if self.compare is not None:
            return self.compare(tape, self, batch)
        tape.autocast = tape.computes_half
        seen: list[Tensor] = []
        logits, loss = self.score(tape, ended(tape, self.decoded(tape, batch, seen)), self.head, batch)
        tape.autocast = False
        tape.casts.clear()
        returned = cast(tape, logits, FULL) if tape.computes_half and logits is not None else logits
        features = [cast(tape, one, FULL) for one in seen if tape.computes_half]
        del logits
        if self.hands_out_copies and returned is not None:
            returned = alike(tape, returned)
        del returned, features
        return loss


def ended(tape: Tape, hidden: Tensor) -> Tensor:
    """What the layers give to the head: here the loss begins, and on the way back it has ended."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        tape.part = "backward"
        return (given.pop(),)

    node = node_for(tape, back, hidden)
    result = hidden.detached()
    result.node = node
    tape.part = "loss"
    return result
