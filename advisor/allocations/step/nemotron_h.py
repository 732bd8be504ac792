"""Layers that are one thing behind one norm: models/nemotron_h/modeling_nemotron_h.py, NemotronHBlock.forward@5.16.1.

Mamba-2 is in pieces here, as it is where its last projection is quantized: axolotl/monkeypatch/models/nemotron_h/
modeling.py:37-67@0.19.0. Where packed rows end is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.norms import by_row, inverse_root, times_weight
from advisor.allocations.autograd.operations import FULL, activation, add, cast, product, saving_result, scaled, split
from advisor.allocations.layers.convolutions import convolution
from advisor.allocations.layers.mixer import Mixer
from advisor.allocations.layers.parts import feed_of, mixer_of
from advisor.allocations.layers.scans import scanned, scanned_back, steps
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.layers.loading import Loader
    from advisor.allocations.shared import Batch, Tables
    from advisor.models import Block
    from advisor.models.blocks import StateSpace

Inner = Callable[["Tape", "Batch", "Tables", "Tensor"], "Tensor"]


@record(eq=False)
class _Single:
    """A layer."""

    inner: Inner
    norms: tuple[Norm, ...]
    mixer: Mixer | None = None
    kind: int = 0

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """The stream with what it adds."""
        hidden = self.norms[0](tape, cast(tape, x, self.norms[0].weight.width))
        hidden = self.inner(tape, batch, tables, hidden)
        return add(tape, x, hidden)


@record(eq=False)
class Pieces:
    """Mamba-2's mixer without its fused kernel: NemotronHMamba2Mixer.forward@5.16.1."""

    sizes: StateSpace
    steps: Tensor
    decays: Tensor
    through: Tensor
    convolution: Tensor
    bias: Tensor | None
    inputs: Linear
    norm: Tensor
    output: Linear

    def __call__(self, tape: Tape, batch: Batch, _tables: Tables, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        sizes, tokens = self.sizes, batch.tokens
        shared = sizes.groups * sizes.state
        projected = self.inputs(tape, x)
        decays = scaled(tape, saving_result(tape, cast(tape, self.decays, FULL)))  # names keep all to the end
        counts = (tokens * sizes.width, tokens * (sizes.width + 2 * shared), tokens * sizes.heads)
        gate, mixed, slopes = split(tape, projected, counts)
        mixed = convolution(tape, mixed, self.convolution, self.bias)
        hidden, into, out_of = split(tape, mixed, (tokens * sizes.width, tokens * shared, tokens * shared))
        found = scan(tape, batch, sizes, hidden, slopes, into, out_of)
        normed = gated_norm(tape, found, self.norm, gate, tokens * sizes.groups)
        result = self.output(tape, normed)
        del decays, found
        return result


def scan(
    tape: Tape, batch: Batch, sizes: StateSpace, hidden: Tensor, slopes: Tensor, into: Tensor, out_of: Tensor
) -> Tensor:
    """mamba-ssm's scan alone: ops/triton/ssd_combined.py, MambaChunkScanCombinedFn@2.3.2."""

    def back(node: Node, _given: list[Tensor]) -> list[Tensor | None]:
        of_slopes = tape.new(batch.tokens * sizes.heads, width)
        of_into, of_out, of_hidden = tape.new(shared, width), tape.new(shared, width), tape.new(count, width)
        copied = steps(tape, batch, sizes)
        scanned_back(tape, batch, sizes, width)
        del copied
        node.drop_unpacked()
        found = (of_hidden, of_slopes, of_into, of_out)
        return [one if needed else None for one, needed in zip(found, node.needs, strict=True)]

    count, shared, width = hidden.count, into.count, hidden.width
    node = node_for(tape, back, hidden, slopes, into, out_of)
    output = scanned(tape, batch, sizes, width)
    kept = (output.detached(), hidden, steps(tape, batch, sizes), steps(tape, batch, sizes), into, out_of)
    if node is not None:
        node.keep(tape, *kept)
    output.node = node
    return output


def gated_norm(tape: Tape, x: Tensor, weight: Tensor, gate: Tensor, groups: int) -> Tensor:
    """Gated, then normed by group: models/zamba2/modeling_zamba2.py, Zamba2RMSNormGated.forward@5.16.1."""
    wide = cast(tape, x, FULL)
    wide = product(tape, wide, activation(tape, cast(tape, gate, FULL)))
    variance, root = inverse_root(tape, wide, groups)
    normed = by_row(tape, wide, root)
    del wide, root
    result = times_weight(tape, weight, cast(tape, normed, x.width))
    del variance, normed
    return result


def single(loader: Loader, block: Block, biased: set[str]) -> _Single:
    """Such a layer, its norm first."""
    norm = loader.norm(block.hidden, loader.norm_module, "rms")
    if block.states is not None:
        return _Single(pieces(loader, block), (norm,))
    if block.attention is not None:
        mixer = mixer_of(loader, block, biased, "rms", frozenset())
        assert isinstance(mixer, Mixer), "known_layers.is_single"
        return _Single(mixer, (norm,), mixer)
    feed = feed_of(loader, block, biased, loader.model.variant, fused=False)
    return _Single(partial(alone, feed=feed), (norm,))


def alone(tape: Tape, _batch: Batch, _tables: Tables, x: Tensor, feed: Callable[[Tape, Tensor], Tensor]) -> Tensor:
    """An MLP, or experts, as a mixer."""
    return feed(tape, x)


def pieces(loader: Loader, block: Block) -> Pieces:
    """A Mamba-2 mixer."""
    assert block.states is not None, "known_layers.is_single"
    shapes = {shape.name: shape for shape in block.linears}
    tensors = {t.name.rpartition(".mixer.")[2]: t for t in loader.model.tensors if ".mixer." in t.name}

    def weight(name: str) -> Tensor:
        return loader.plain(tensors[name].numel, tensors[name].module)

    first = [weight(name) for name in ("dt_bias", "A_log", "D", "conv1d.weight")]
    bias = weight("conv1d.bias") if "conv1d.bias" in tensors else None
    inputs = loader.linear(shapes["in_proj"], bias=False)
    norm = weight("norm.weight")
    output = loader.linear(shapes["out_proj"], bias=False)
    return Pieces(block.states, first[0], first[1], first[2], first[3], bias, inputs, norm, output)
