"""RMS norms in plain operations: models/llama/modeling_llama.py, LlamaRMSNorm.forward@5.16.1; and layer norms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd import liger
from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, HALF, cast, copied
from advisor.record import record

if TYPE_CHECKING:
    from advisor.models.layer_variant import NormVariant


@record(eq=False)
class Norm:
    """A norm and its weights."""

    kind: NormVariant
    weight: Tensor
    bias: Tensor | None = None
    in_place: bool = True
    """Whether Liger's kernel writes its gradient over the one that it gets."""
    strided: bool = False
    """Whether a layer norm gets rows that do not lie in order, and copies them each way."""
    turns: bool = False
    """Whether its gradient comes so."""

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """What it returns."""
        match self.kind:
            case "liger":
                return liger.rms_norm(tape, x, self.weight, in_place=self.in_place)
            case "offset rms":
                return _offset_rms_norm(tape, x, self.weight)
            case "fp32 rms":
                return _wide_rms_norm(tape, x, self.weight)
            case "layer":
                return layer_norm(tape, x, self)
            case "half layer":
                return _half_layer_norm(tape, x, self.weight, self.bias)
            case _:
                return rms_norm(tape, x, self.weight)


NORMS: frozenset[NormVariant] = frozenset({"rms", "offset rms", "fp32 rms", "layer", "half layer", "liger"})
"""The kinds that a tape has."""


def rms_norm(tape: Tape, x: Tensor, weight: Tensor) -> Tensor:
    """Over rows as wide as the weight, in fp32; returned in the input's precision, or the weight's if that is wider."""
    wide = cast(tape, x, FULL)
    variance, root = inverse_root(tape, wide, x.count // weight.count)
    normed = by_row(tape, wide, root)
    del wide, root
    half = cast(tape, normed, x.width)
    result = times_weight(tape, weight, half)
    del variance, normed
    return result


def _wide_rms_norm(tape: Tape, x: Tensor, weight: Tensor) -> Tensor:
    """The weight multiplies in fp32: models/olmo2/modeling_olmo2.py, Olmo2RMSNorm.forward@5.16.1."""
    wide = cast(tape, x, FULL)
    variance, root = inverse_root(tape, wide, x.count // weight.count)
    normed = by_row(tape, wide, root)
    del wide, root
    result = cast(tape, times_weight(tape, weight, normed), x.width)
    del variance, normed
    return result


def _offset_rms_norm(tape: Tape, x: Tensor, weight: Tensor) -> Tensor:
    """One plus the weight, in fp32: models/gemma3/modeling_gemma3.py, Gemma3RMSNorm.forward@5.16.1."""
    wide = cast(tape, x, FULL)
    _, root = inverse_root(tape, wide, x.count // weight.count, keeps_variance=False)
    normed = by_row(tape, wide, root)
    del wide, root
    exact = cast(tape, weight, FULL)
    factor = copied(tape, exact)
    del exact
    product = times_weight(tape, factor, normed, weight_last=True)
    del normed, factor
    return cast(tape, product, x.width)


def layer_norm(tape: Tape, x: Tensor, norm: Norm) -> Tensor:
    """``nn.LayerNorm``, which CUDA's autocast runs in fp32: aten/src/ATen/native/layer_norm.cpp@2.13.0."""
    inputs = [one for one in (x, norm.weight, norm.bias) if one is not None]
    inputs = [cast(tape, one, FULL) if tape.autocast else one for one in inputs]
    return _normalised(tape, inputs, strided=norm.strided, turns=norm.turns)


def _half_layer_norm(tape: Tape, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """One plus the weight, outside of autocast: models/nemotron, NemotronLayerNorm1P.forward@5.16.1."""
    inputs = [one for one in (x, copied(tape, weight), bias) if one is not None]
    return _normalised(tape, [cast(tape, one, HALF) if tape.autocast else one for one in inputs])


def _normalised(tape: Tape, inputs: list[Tensor], *, strided: bool = False, turns: bool = False) -> Tensor:
    """The layer norm of the first, over rows as wide as the second.

    aten/src/ATen/native/cuda/layer_norm_kernel.cu, layer_norm_cuda, layer_norm_backward_cuda@2.13.0.
    """

    def back(node: Node, _given: list[Tensor]) -> list[Tensor | None]:
        _copies = [tape.new(*sizes[0]) for copies in (turns, strided) if copies]
        return [tape.new(*size) if needed else None for size, needed in zip(sizes, node.needs, strict=True)]

    x, weight = inputs[0], inputs[1]
    sizes = [(one.count, one.width) for one in inputs]
    node = node_for(tape, back, *inputs)
    rows = x.count // weight.count
    copy = tape.new(x.count, x.width) if strided else None
    result = tape.new(x.count, x.width)
    statistics = tape.new(rows, FULL), tape.new(rows, FULL)
    del copy
    if node is not None:
        node.keep(tape, *inputs, *statistics)
    result.node = node
    return result


def inverse_root(tape: Tape, x: Tensor, rows: int, *, keeps_variance: bool = True) -> tuple[Tensor | None, Tensor]:
    """The mean of the squares, if it has a name that keeps it, and one over its root."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor]:
        cubed, halved = tape.new(rows, FULL), tape.new(rows, FULL)
        of_mean = tape.new(rows, FULL)
        del cubed, halved
        given.clear()
        node.take()
        spread = tape.new(count, FULL)
        del of_mean
        power, doubled = tape.new(count, FULL), tape.new(count, FULL)
        of_square = tape.new(count, FULL)
        del power, doubled, spread
        return (of_square,)

    count = x.count
    node = node_for(tape, back, x)
    squares = tape.new(count, FULL)
    variance: Tensor | None = tape.new(rows, FULL)
    del squares
    shifted = tape.new(rows, FULL)
    if not keeps_variance:
        variance = None
    root = tape.new(rows, FULL)
    del shifted
    if node is not None:
        node.keep(tape, root.detached(), x)
    root.node = node
    return variance, root


def by_row(tape: Tape, x: Tensor, factors: Tensor) -> Tensor:
    """Rows times a factor each; the factors' gradient is made first, and summed last."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor, Tensor]:
        of_factors = tape.new(count, FULL)
        of_rows = tape.new(count, FULL)
        summed = tape.new(rows, FULL)
        del of_factors
        return of_rows, summed

    count, rows = x.count, factors.count
    node = node_for(tape, back, x, factors)
    if node is not None:
        node.keep(tape, x, factors)
    result = tape.new(count, FULL)
    result.node = node
    return result


def times_weight(tape: Tape, weight: Tensor, x: Tensor, *, weight_last: bool = False) -> Tensor:
    """Rows times a weight; the gradient of what stands on the right is made first."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        count, width = given[0].count, given[0].width
        whole = tape.new(count, width) if trained and weight_last else None
        inner = tape.new(count, width) if reaches else None
        if not trained:
            return inner if inner is None or width == came else tape.new(count, came), None
        whole = whole or tape.new(count, width)
        node.drop_unpacked()
        of_weight = tape.new(size, width)
        del whole
        return inner, of_weight if width <= weight_width else tape.new(size, weight_width)

    reaches, trained, size, weight_width = x.requires_grad, weight.requires_grad, weight.count, weight.width
    came = x.width
    node = node_for(tape, back, x, weight)
    if node is not None:
        node.keep(tape, *((x,) if trained else ()), *((weight,) if reaches else ()))
    result = tape.new(x.count, max(x.width, weight.width))
    result.node = node
    return result
