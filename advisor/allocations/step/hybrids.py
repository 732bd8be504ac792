"""Layers in which something other than attention mixes tokens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.autograd.linears import Plain
from advisor.allocations.autograd.operations import activation, add, product, scaled
from advisor.allocations.layers.mixer import Mixer
from advisor.allocations.layers.parts import mixer_of
from advisor.allocations.layers.scans import Scan
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.layers.loading import Loader
    from advisor.allocations.shared import Batch, Tables
    from advisor.models import Block


@record(eq=False)
class _ScaledGated:
    """An MLP with two multipliers, and its gate last: FalconH1MLP.forward@5.16.1."""

    gate: Linear
    up: Linear
    down: Linear

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        up = self.up(tape, x)
        inner = product(tape, up, activation(tape, scaled(tape, self.gate(tape, x))))
        del up
        return scaled(tape, self.down(tape, inner))


@record(eq=False)
class _SideBySide:
    """Attention and Mamba on one norm: models/falcon_h1/modeling_falcon_h1.py, FalconH1DecoderLayer.forward@5.16.1."""

    scan: Scan
    mixer: Mixer
    feed: _ScaledGated
    norms: tuple[Norm, ...]
    kind: int = 0

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """Both, multiplied and added to what came in, and the MLP; names keep both to the end."""
        hidden = self.norms[0](tape, x)
        scanned = scaled(tape, self.scan(tape, batch, hidden))
        attended = scaled(tape, self.mixer(tape, batch, tables, scaled(tape, hidden)))
        hidden = add(tape, scanned, attended)
        hidden = add(tape, x, hidden)
        residual = hidden
        hidden = self.norms[1](tape, hidden)
        hidden = self.feed(tape, hidden)
        return add(tape, residual, hidden)


def side_by_side(loader: Loader, block: Block, biased: set[str]) -> _SideBySide:
    """Such a layer, with its weights in the order of its modules."""
    _, kind = family_and_norm(loader.run, block)
    shapes = {shape.name: shape for shape in block.linears}
    linear = partial(loader.linear, bias=False)
    feed = _ScaledGated(*(linear(shapes[name]) for name in ("gate_proj", "up_proj", "down_proj")))
    scan = _scan_of(loader, block)
    mixer = mixer_of(loader, block, biased, kind, frozenset())
    assert isinstance(mixer, Mixer), "known_layers.is_side_by_side"
    norms = tuple(loader.norm(block.hidden, loader.norm_module, kind) for _ in range(block.norms))
    return _SideBySide(scan, mixer, feed, norms)


def _scan_of(loader: Loader, block: Block) -> Scan:
    """A Mamba-2 mixer."""
    sizes = block.states
    assert sizes is not None, "known_layers.is_side_by_side"
    shapes = {shape.name: shape for shape in block.linears}
    tensors = {t.name.rpartition(".mamba.")[2]: t for t in loader.model.tensors if ".mamba." in t.name}

    def weight(name: str) -> Tensor:
        return loader.plain(tensors[name].numel, tensors[name].module)

    steps, decays, through, convolution = (weight(name) for name in ("dt_bias", "A_log", "D", "conv1d.weight"))
    bias = weight("conv1d.bias") if "conv1d.bias" in tensors else None
    inputs = loader.linear(shapes["in_proj"], bias=False)
    norm = weight("norm.weight") if sizes.normed else None
    output = loader.linear(shapes["out_proj"], bias=False)
    assert isinstance(output, Plain), "known_layers.is_side_by_side"
    return Scan(sizes, steps, decays, through, convolution, bias, inputs, norm, output)
