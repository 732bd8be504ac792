"""The decoder layers, as transformers 5.16.1 computes them: attention and MLP between norms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

from advisor.allocations.autograd import fused, liger
from advisor.allocations.autograd.operations import activation, add, dropped, product, scaled, split
from advisor.allocations.layers.mixer import Mixer, together
from advisor.allocations.shared import Batch, Feed, Tables
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.layers.delta_nets import DeltaNet
    from advisor.allocations.layers.latents import Latent

Order = Literal["before", "before, held", "around", "after", "parallel", "one norm"]
"""Where a layer's norms stand: before attention and MLP, with what they read kept to the end or not, before and after,
after; or both parts read the same stream, through a norm each or through one."""


@record(eq=False)
class Gated:
    """An MLP with a gate: LlamaMLP.forward."""

    gate: Linear
    up: Linear
    down: Linear
    fused: bool = False
    """Whether axolotl's function computes all three, without the dropout behind them."""
    drops: bool = False
    """Whether dropout comes last: SeedOssMLP.forward@5.16.1."""
    liger: bool = False
    """Whether one of Liger's kernels multiplies."""

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        if self.fused:
            return fused.mlp(tape, x, together(self.gate, self.up, self.down))
        if self.liger:
            inner = liger.gated(tape, self.gate(tape, x), self.up(tape, x))
            return self.down(tape, inner)
        inner = product(tape, activation(tape, self.gate(tape, x)), self.up(tape, x))
        inner = self.down(tape, inner)
        return dropped(tape, inner) if self.drops else inner


@record(eq=False)
class FusedGated:
    """The same with one linear for gate and up: models/phi3/modeling_phi3.py, Phi3MLP.forward@5.16.1."""

    gate_up: Linear
    down: Linear

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        up = self.gate_up(tape, x)
        gate, up = split(tape, up, (up.count // 2,) * 2)
        up = product(tape, up, activation(tape, gate))
        return self.down(tape, up)


@record(eq=False)
class PlainFeed:
    """Two linears with an activation between them."""

    up: Linear
    down: Linear
    activation: Callable[[Tape, Tensor], Tensor] = activation
    drops: bool = False
    """Whether dropout comes last: Starcoder2MLP.forward@5.16.1."""

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        hidden = self.up(tape, x)
        hidden = self.activation(tape, hidden)
        hidden = self.down(tape, hidden)
        return dropped(tape, hidden) if self.drops else hidden


@record(eq=False)
class Layer:
    """A decoder layer: models/llama/modeling_llama.py, LlamaDecoderLayer.forward@5.16.1, and others by their order."""

    mixer: Mixer | Latent | DeltaNet
    feed: Feed
    norms: tuple[Norm, ...]
    order: Order = "before"
    kind: int = 0
    """Which of the model's tables of positions it reads."""
    scales: bool = False
    """Whether both are multiplied by a number before they join the stream (models/granite@5.16.1)."""

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """Attention and MLP, each added to what came in."""
        return ORDERS[self.order](self, tape, partial(self.mixer, tape, batch, tables), x)

    def onto(self, tape: Tape, residual: Tensor, x: Tensor) -> Tensor:
        """The stream with attention or MLP in it."""
        return add(tape, residual, scaled(tape, x) if self.scales else x)


Attend = Callable[["Tensor"], "Tensor"]


def _norms_before(layer: Layer, tape: Tape, attend: Attend, x: Tensor) -> Tensor:
    """Llama's order."""
    residual = x
    hidden = layer.norms[0](tape, x)
    hidden = attend(hidden)
    hidden = layer.onto(tape, residual, hidden)
    residual = hidden
    hidden = layer.norms[1](tape, hidden)
    hidden = layer.feed(tape, hidden)
    return layer.onto(tape, residual, hidden)


def _norms_before_held(layer: Layer, tape: Tape, attend: Attend, x: Tensor) -> Tensor:
    """models/stablelm/modeling_stablelm.py, StableLmDecoderLayer.forward@5.16.1."""
    hidden = layer.norms[0](tape, x)
    attended = attend(hidden)
    residual = add(tape, x, attended)
    fed = layer.feed(tape, layer.norms[1](tape, residual))
    return add(tape, residual, fed)


def _norms_around(layer: Layer, tape: Tape, attend: Attend, x: Tensor) -> Tensor:
    """Gemma's order since its second version: models/gemma2/modeling_gemma2.py, Gemma2DecoderLayer.forward@5.16.1."""
    residual = x
    hidden = layer.norms[0](tape, x)
    hidden = attend(hidden)
    hidden = layer.norms[1](tape, hidden)
    hidden = add(tape, residual, hidden)
    residual = hidden
    hidden = layer.norms[2](tape, hidden)
    hidden = layer.feed(tape, hidden)
    hidden = layer.norms[3](tape, hidden)
    return add(tape, residual, hidden)


def _norms_after(layer: Layer, tape: Tape, attend: Attend, x: Tensor) -> Tensor:
    """OLMo 2's order: models/olmo2/modeling_olmo2.py, Olmo2DecoderLayer.forward@5.16.1."""
    residual = x
    hidden = attend(x)
    hidden = layer.norms[0](tape, hidden)
    hidden = add(tape, residual, hidden)
    residual = hidden
    hidden = layer.feed(tape, hidden)
    hidden = layer.norms[1](tape, hidden)
    return add(tape, residual, hidden)


def parallel(layer: Layer, tape: Tape, attend: Attend, x: Tensor) -> Tensor:
    """models/gpt_neox/modeling_gpt_neox.py, GPTNeoXLayer.forward@5.16.1."""
    attended = attend(layer.norms[0](tape, x))
    fed = layer.feed(tape, layer.norms[1](tape, x))
    return add(tape, add(tape, fed, attended), x)


def _one_norm(layer: Layer, tape: Tape, attend: Attend, x: Tensor) -> Tensor:
    """models/phi/modeling_phi.py, PhiDecoderLayer.forward@5.16.1."""
    hidden = layer.norms[0](tape, x)
    attended = attend(hidden)
    fed = layer.feed(tape, hidden)
    return add(tape, add(tape, attended, fed), x)


ORDERS: dict[Order, Callable[[Layer, Tape, Attend, Tensor], Tensor]] = {
    "before": _norms_before,
    "before, held": _norms_before_held,
    "around": _norms_around,
    "after": _norms_after,
    "parallel": parallel,
    "one norm": _one_norm,
}
