"""The decoder layers and the model around them, as transformers 5.16.1 computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from advisor.memory.reserved import fused, losses
from advisor.memory.reserved.attention import by_head, flash, rotated
from advisor.memory.reserved.autograd import node_for
from advisor.memory.reserved.checkpoint import non_reentrant, reentrant
from advisor.memory.reserved.linears import Adapted
from advisor.memory.reserved.norms import rms_norm
from advisor.memory.reserved.operations import FULL, HALF, LONG, activation, add, cast, embedded, product
from advisor.record import record

if TYPE_CHECKING:
    from advisor.memory.reserved.autograd import Node, Tape, Tensor
    from advisor.memory.reserved.linears import Linear, Plain
    from advisor.models import Attention


def straight(_tape: Tape, layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A layer that keeps what it saves."""
    return layer(x)


PASSES: dict[str, Callable[[Tape, Callable[[Tensor], Tensor], Tensor], Tensor]] = {
    "": straight,
    "reentrant": reentrant,
    "non-reentrant": non_reentrant,
}
Score = Callable[["Tape", "Tensor", "Plain", "Batch"], tuple["Tensor | None", "Tensor"]]
"""What the head reads, the head and the rows, to the logits, if the model returns any, and the loss."""
Tables = tuple["Tensor", ...]
"""Cosines and sines; and the positions, which layers are given and do not read."""


@record(eq=False)
class Batch:
    """Rows of one length, and how a forward over them is kept for backward."""

    rows: int
    length: int
    checkpointing: str = ""
    """``reentrant``, ``non-reentrant`` or none."""

    @property
    def tokens(self) -> int:
        """Tokens of all rows."""
        return self.rows * self.length


@record(eq=False)
class Layer:
    """A decoder layer like Llama's: models/llama/modeling_llama.py, LlamaDecoderLayer.forward@5.16.1."""

    attention: Attention
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    gate: Linear
    up: Linear
    down: Linear
    norms: tuple[Tensor, Tensor]
    query_key_norms: tuple[Tensor, Tensor] | None = None
    kernels: frozenset[str] = frozenset()
    """Which of axolotl's fused functions compute its linears: ``qkv``, ``o``, ``mlp``."""

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """Attention and MLP, each added to what came in."""
        residual = x
        hidden = rms_norm(tape, x, self.norms[0])
        hidden = self.attend(tape, batch, tables, hidden)
        hidden = add(tape, residual, hidden)
        residual = hidden
        hidden = rms_norm(tape, hidden, self.norms[1])
        hidden = self.feed(tape, hidden)
        return add(tape, residual, hidden)

    def attend(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """Self attention."""
        query, key, value = self.project(tape, x)
        query, key = rotated(tape, query, tables), rotated(tape, key, tables)
        output = flash(tape, batch.rows, batch.length, self.attention, (query, key, value))
        if "o" in self.kernels and isinstance(self.output, Adapted):
            return fused.output(tape, output, self.output)
        return self.output(tape, output)

    def project(self, tape: Tape, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, with their norms."""
        if "qkv" in self.kernels:
            query, key, value = fused.projected(tape, x, together(self.query, self.key, self.value))
            query = self.normed(tape, by_head(tape, query), 0)
            key = self.normed(tape, by_head(tape, key), 1)
            return query, key, value
        query = self.normed(tape, by_head(tape, self.query(tape, x)), 0)
        key = self.normed(tape, by_head(tape, self.key(tape, x)), 1)
        return query, key, self.value(tape, x)

    def normed(self, tape: Tape, x: Tensor, index: int) -> Tensor:
        """Queries or keys through their norm, where they have one."""
        return x if self.query_key_norms is None else rms_norm(tape, x, self.query_key_norms[index])

    def feed(self, tape: Tape, x: Tensor) -> Tensor:
        """The gated MLP."""
        if "mlp" in self.kernels:
            return fused.mlp(tape, x, together(self.gate, self.up, self.down))
        inner = product(tape, activation(tape, self.gate(tape, x)), self.up(tape, x))
        return self.down(tape, inner)


def together(*some: Linear) -> tuple[Adapted, Adapted, Adapted]:
    """Three linears that a fused function computes: all have adapters."""
    first, second, third = (one for one in some if isinstance(one, Adapted))
    return first, second, third


@record(eq=False)
class Model:
    """Weights in the order of ``parameters()``, and the modules that have them."""

    embedding: Tensor
    hidden: int
    layers: Sequence[Layer]
    norm: Tensor
    head: Plain
    weights: Sequence[Tensor]
    asks_for_gradients: bool = False
    """Whether the embedding's output is made to need a gradient: ``enable_input_require_grads``."""
    score: Score = losses.plain
    """The head and the loss."""

    @property
    def trained(self) -> list[Tensor]:
        """The weights that get gradients."""
        return [weight for weight in self.weights if weight.trained]

    def decoded(self, tape: Tape, batch: Batch) -> Tensor:
        """What the head reads."""
        inputs = embedded(tape, self.embedding, batch.tokens, self.hidden)
        inputs.trained = inputs.trained or self.asks_for_gradients
        counted = tape.new(batch.length, LONG)
        positions = tape.new(batch.length, LONG)
        del counted
        tables = (*rotary_tables(tape, batch.length, self.layers[0].attention.head_dim, inputs.width), positions)
        pass_through = PASSES[batch.checkpointing]
        hidden = inputs
        for layer in self.layers:
            hidden = pass_through(tape, partial(layer, tape, batch, tables), hidden)
        return rms_norm(tape, hidden, self.norm)

    def loss(self, tape: Tape, batch: Batch) -> Tensor:
        """The loss of a micro-step; logits come back in fp32 and live until it is returned.

        accelerate/utils/operations.py, ConvertOutputsToFp32@1.13.0.
        """
        tape.autocast = tape.computes_half
        logits, loss = self.score(tape, ended(tape, self.decoded(tape, batch)), self.head, batch)
        tape.autocast = False
        tape.casts.clear()
        returned = cast(tape, logits, FULL) if tape.computes_half and logits is not None else logits
        del returned
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


def rotary_tables(tape: Tape, length: int, width: int, precision: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the positions: LlamaRotaryEmbedding.forward."""
    positions = tape.new(length, FULL)
    frequencies = tape.new(length * width // 2, FULL)
    angles = tape.new(length * width, FULL)
    found: list[Tensor] = []
    for _ in range(2):
        raw = tape.new(length * width, FULL)
        found.append(tape.new(length * width, FULL))
        del raw
    if precision == FULL:
        return found[0], found[1]
    half = tape.new(length * width, HALF), tape.new(length * width, HALF)
    del positions, frequencies, angles
    return half
