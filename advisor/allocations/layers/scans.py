"""Mamba-2's mixer as one kernel of mamba-ssm: ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn@2.3.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, HALF, autocast, cast, saving_result, scaled
from advisor.memory.activations.state_spaces import BLOCK, MULTIPROCESSORS, channels
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Linear, Plain
    from advisor.allocations.shared import Batch
    from advisor.models.blocks import StateSpace


@record(eq=False)
class Scan:
    """The mixer of Falcon H1: models/falcon_h1/modeling_falcon_h1.py, FalconH1Mixer.forward@5.16.1."""

    sizes: StateSpace
    steps: Tensor
    """A number a head: the bias of the steps."""
    decays: Tensor
    through: Tensor
    convolution: Tensor
    bias: Tensor | None
    inputs: Linear
    norm: Tensor | None
    output: Plain

    def __call__(self, tape: Tape, batch: Batch, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        hidden = scaled(tape, x) if self.sizes.scaled else x
        projected = self.inputs(tape, hidden)
        projected = scaled(tape, projected)
        decays = scaled(tape, saving_result(tape, cast(tape, self.decays, FULL)))
        return split_scan(tape, batch, self, projected, decays)


def split_scan(tape: Tape, batch: Batch, one: Scan, projected: Tensor, decays: Tensor) -> Tensor:
    """Convolution, scan, gated norm and last projection; backward computes all but the scan's output again."""

    def back(node: Node, given: list[Tensor]) -> list[Tensor | None]:
        again, convolved = tape.new(inner, width), tape.new(mixed, width)
        of_projected, of_convolved = tape.new(count, width), tape.new(mixed, width)
        of_gated = tape.new(inner, HALF)
        of_output = [tape.new(inner, width) for _ in range(1 if normed else 2)]
        scanned_back(tape, batch, sizes, width)
        of_out = tape.new(one.output.weight.count, HALF)
        update = tape.new(mixed, width)
        small = [tape.new(*size) for size in small_sizes]
        del again, convolved, of_convolved, of_gated, of_output, update
        given.clear()
        node.drop_unpacked()
        found: list[Tensor | None] = [of_projected, *small, of_out]
        return [gradient if needed else None for gradient, needed in zip(found, node.needs, strict=True)]

    sizes, width, count = one.sizes, projected.width, projected.count
    inner, mixed, normed = batch.tokens * sizes.width, batch.tokens * channels(sizes), one.norm is not None
    vectors = [one.convolution, one.bias, one.steps, decays, one.through, one.norm]
    weights = [weight for weight in vectors if weight is not None]
    small_sizes = [(weight.count, weight.width) for weight in weights]
    node = node_for(tape, back, projected, *weights, one.output.weight)
    convolved = tape.new(mixed, width)
    output = scanned(tape, batch, sizes, width)
    gated = tape.new(inner, width)
    roots = [tape.new(batch.tokens * sizes.groups, FULL)] if normed else []
    last = autocast(tape, one.output.weight)
    if node is not None:
        node.keep(tape, projected, *weights, output, *roots, last)
    del convolved
    result = tape.new(batch.tokens * one.output.n_out, HALF)
    del gated, output, roots, last
    result.node = node
    return result


def steps(tape: Tape, batch: Batch, sizes: StateSpace) -> Tensor:
    """One fp32 number a head and token, of whole chunks."""
    return tape.new(_steps_count(batch, sizes), FULL)


def _steps_count(batch: Batch, sizes: StateSpace) -> int:
    """How many of them."""
    return batch.rows * chunks(batch, sizes) * sizes.chunk * sizes.heads


def states(tape: Tape, batch: Batch, sizes: StateSpace, width: int = FULL) -> Tensor:
    """The state at the start of each chunk."""
    return tape.new(batch.rows * chunks(batch, sizes) * sizes.width * sizes.state, width)


def scores(tape: Tape, batch: Batch, sizes: StateSpace, parts: int = 1) -> Tensor:
    """Products of all pairs of one chunk."""
    return tape.new(batch.rows * chunks(batch, sizes) * parts * sizes.groups * sizes.chunk**2, FULL)


def chunks(batch: Batch, sizes: StateSpace) -> int:
    """Chunks of a row."""
    return -(-batch.length // sizes.chunk)


def shared(tape: Tape, batch: Batch, sizes: StateSpace) -> Tensor:
    """Gradients of what heads share: a sum for each part of them, and their sum."""
    count = batch.tokens * sizes.groups * sizes.state
    parts = tape.new(count * splits(batch, sizes), FULL)
    result = tape.new(count, FULL)
    del parts
    return result


def splits(batch: Batch, sizes: StateSpace) -> int:
    """Parts of a sum over the heads of a group, so that each multiprocessor has one to add up."""
    heads = sizes.heads // sizes.groups
    each = max(1, min(heads, -(-batch.rows * chunks(batch, sizes) * sizes.heads // MULTIPROCESSORS)))
    return -(-heads // each)


def scanned(tape: Tape, batch: Batch, sizes: StateSpace, width: int) -> Tensor:
    """The forward of a scan: ``_mamba_chunk_scan_combined_fwd``."""
    kept = steps(tape, batch, sizes), steps(tape, batch, sizes)
    exact = states(tape, batch, sizes)
    state = states(tape, batch, sizes, width)
    del exact
    pairs = scores(tape, batch, sizes)
    output = tape.new(batch.tokens * sizes.width, width)
    del kept, state, pairs
    return output


def scanned_back(tape: Tape, batch: Batch, sizes: StateSpace, width: int) -> None:
    """Its backward, which computes states and scores again: ``_mamba_chunk_scan_combined_bwd``."""
    kept = [steps(tape, batch, sizes), steps(tape, batch, sizes), scores(tape, batch, sizes)]
    first = states(tape, batch, sizes)
    state = states(tape, batch, sizes)
    del first
    before = states(tape, batch, sizes)
    halves = states(tape, batch, sizes, width), states(tape, batch, sizes, width)
    del before, state
    for _ in range(2):
        kept += [steps(tape, batch, sizes), shared(tape, batch, sizes)]
    kept.append(steps(tape, batch, sizes))
    parts = scores(tape, batch, sizes, splits(batch, sizes))
    kept.append(scores(tape, batch, sizes))
    del parts
    blocks = tape.new(_steps_count(batch, sizes) * -(-sizes.chunk // BLOCK), FULL)
    kept.append(steps(tape, batch, sizes))
    del kept, halves, blocks
