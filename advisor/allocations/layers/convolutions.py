"""Gated short convolutions: models/lfm2/modeling_lfm2.py, Lfm2ShortConv.forward@5.16.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import add, product, split
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.shared import Batch, Feed, Tables


@record(eq=False)
class Convolution:
    """The convolution between two gates, all three out of one projection."""

    weight: Tensor
    bias: Tensor | None
    inputs: Linear
    output: Linear

    def __call__(self, tape: Tape, batch: Batch, x: Tensor) -> Tensor:
        """What it adds to the stream; a product takes one row with rows and columns swapped as it is."""
        tape.transposed = self.inputs.n_out if batch.rows > 1 else 0
        whole = self.inputs(tape, x)
        tape.transposed = 0
        first, second, inner = split(tape, whole, (whole.count // 3,) * 3)
        hidden = product(tape, first, inner)
        convolved = convolution(tape, hidden, self.weight, self.bias)
        del hidden
        gated = product(tape, second, convolved)
        return self.output(tape, gated)


@record(eq=False)
class Convolved:
    """A layer with such a convolution in place of attention: Lfm2DecoderLayer.forward@5.16.1."""

    convolution: Convolution
    feed: Feed
    norms: tuple[Norm, ...]
    mixer: None = None
    kind: int = 0

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:  # noqa: ARG002
        """The convolution and the MLP, each added to what came in."""
        hidden = self.norms[0](tape, x)
        hidden = self.convolution(tape, batch, hidden)
        hidden = add(tape, hidden, x)
        fed = self.norms[1](tape, hidden)
        fed = self.feed(tape, fed)
        return add(tape, hidden, fed)


def convolution(tape: Tape, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """causal-conv1d's kernel: csrc/causal_conv1d.cpp@1.5."""

    def back(node: Node, _given: list[Tensor]) -> list[Tensor | None]:
        found = [tape.new(*size) for size in sizes]
        node.drop_unpacked()
        return [one if needed else None for one, needed in zip(found, node.needs, strict=True)]

    inputs = (x, weight) if bias is None else (x, weight, bias)
    sizes = [(one.count, one.width) for one in inputs]
    node = node_for(tape, back, *inputs)
    if node is not None:
        node.keep(tape, *inputs)
    result = tape.new(x.count, x.width)
    result.node = node
    return result
