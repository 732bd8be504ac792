"""Gated delta nets: models/qwen3_5/modeling_qwen3_5.py, Qwen3_5GatedDeltaNet.forward@5.16.1.

The rule is flash-linear-attention's kernel, and so is the convolution of packed rows, for which axolotl has layers of
its own: axolotl/monkeypatch/models/qwen3_5/modeling.py@0.19.0. Where packed rows end is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import node_for
from advisor.allocations.autograd.masks import repeated
from advisor.allocations.autograd.norms import by_row, inverse_root, times_weight
from advisor.allocations.autograd.operations import FULL, activation, cast, product, saving_result, scaled, split
from advisor.allocations.layers.convolutions import convolution
from advisor.allocations.layers.delta_rule import convolved_in_rows, delta_rule
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Node, Tape, Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.layers.loading import Loader
    from advisor.allocations.shared import Batch, Tables
    from advisor.models import Attention, Block

INPUTS = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a")


@record(eq=False)
class DeltaNet:
    """The mixer, with its weights in the order of its modules."""

    attention: Attention
    steps: Tensor
    """A number a head: the bias of the slopes."""
    decays: Tensor
    weight: Tensor
    """Of the convolution."""
    norm: Tensor
    output: Linear
    inputs: tuple[Linear, ...]
    """Of queries, keys and values, of the gate, and of strengths and slopes."""
    packed: bool = False

    def __call__(self, tape: Tape, batch: Batch, _tables: Tables, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        sizes = self.attention
        mixed, gate, strengths, slopes = [one(tape, x) for one in self.inputs]
        if self.packed:
            entered = mixed  # a dictionary names all four to the end
            mixed = convolved_in_rows(tape, batch, entered, self.weight)
        else:
            mixed = convolution(tape, mixed, self.weight, None)
        counts = [batch.tokens * width for width in (sizes.key_width, sizes.key_width, sizes.value_width)]
        query, key, value = split(tape, mixed, counts)
        strength = saving_result(tape, strengths)
        slope = self.slope(tape, slopes)
        groups = sizes.heads // sizes.kv_heads
        query = repeated(tape, query, groups)
        key = repeated(tape, key, groups)
        found = delta_rule(tape, batch, sizes, (query, key, value, slope, strength))
        found = gated_norm(tape, found, self.norm, gate)
        return self.output(tape, found)

    def slope(self, tape: Tape, x: Tensor) -> Tensor:
        """How fast a head forgets, in fp32."""
        decays = scaled(tape, saving_result(tape, cast(tape, self.decays, FULL)))
        return times_weight(tape, decays, activation(tape, shifted(tape, cast(tape, x, FULL), self.steps)))


def shifted(tape: Tape, x: Tensor, bias: Tensor) -> Tensor:
    """A bias a head is added; its gradient is summed, then cast."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        gradient = given.pop()
        if not node.needs[1]:
            return gradient, None
        summed = tape.new(count, FULL)
        return gradient if node.needs[0] else None, summed if width == FULL else tape.new(count, width)

    count, width = bias.count, bias.width
    node = node_for(tape, back, x, bias)
    result = tape.new(x.count, FULL)
    result.node = node
    return result


def gated_norm(tape: Tape, x: Tensor, weight: Tensor, gate: Tensor) -> Tensor:
    """Rows as wide as the weight, normed, and then times a gate in fp32: Qwen3_5RMSNormGated.forward@5.16.1."""
    wide = cast(tape, x, FULL)
    variance, root = inverse_root(tape, wide, x.count // weight.count)
    normed = by_row(tape, wide, root)
    del wide, root
    hidden = times_weight(tape, weight, cast(tape, normed, x.width))
    del normed
    hidden = product(tape, hidden, activation(tape, cast(tape, gate, FULL)))
    result = cast(tape, hidden, x.width)
    del variance
    return result


def delta_net(loader: Loader, block: Block) -> DeltaNet:
    """A layer's mixer."""
    assert block.attention is not None, "known_layers.is_delta_net"
    shapes = {shape.name: shape for shape in block.linears}
    tensors = {t.name.rpartition(".linear_attn.")[2]: t for t in loader.model.tensors if ".linear_attn." in t.name}
    names = ("dt_bias", "A_log", "conv1d.weight", "norm.weight")
    steps, decays, weight, norm = (loader.plain(tensors[name].numel, tensors[name].module) for name in names)
    output = loader.linear(shapes["out_proj"], bias=False)
    inputs = tuple(loader.linear(shapes[name], bias=False) for name in INPUTS)
    return DeltaNet(block.attention, steps, decays, weight, norm, output, inputs, packed=loader.run.sample_packing)
