"""Linear layers: plain, quantized, and with an adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import (
    FULL,
    HALF,
    add,
    cast,
    copied,
    dropped,
    matmul,
    saving_result,
    scaled,
)

if TYPE_CHECKING:
    from advisor.models.blocks import LinearShape


class Linear(Protocol):
    """Something that multiplies."""

    n_in: int
    n_out: int

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """The product."""
        ...


class Plain:
    """``nn.Linear``."""

    def __init__(self, n_in: int, n_out: int, weight: Tensor, bias: Tensor | None = None) -> None:
        self.n_in, self.n_out, self.weight, self.bias = n_in, n_out, weight, bias

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """The product."""
        return matmul(tape, x, self.weight, self.n_out, self.bias)


class Head(Plain):
    """``lm_head`` and what some families do to its logits: Granite divides, Gemma 2 caps, Nemotron-H casts them."""

    def __init__(
        self,
        shape: LinearShape,
        weight: Tensor,
        bias: Tensor | None,
        quantized: FourBit | EightBit | None = None,
        *,
        divides: bool,
        caps: bool,
        widens: bool = False,
    ) -> None:
        super().__init__(shape.n_in, shape.n_out, weight, bias)
        self.divides, self.caps, self.quantized, self.widens = divides, caps, quantized, widens

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """The logits."""
        logits = self.quantized(tape, x) if self.quantized is not None else super().__call__(tape, x)
        if self.divides:
            logits = scaled(tape, logits)
        if self.caps:
            logits = scaled(tape, logits)
            logits = saving_result(tape, logits)
            logits = scaled(tape, logits)
        return cast(tape, logits, FULL) if self.widens else logits


class FourBit:
    """bitsandbytes' Linear4bit: a whole weight in half precision, each way.

    bitsandbytes/nn/modules.py, Linear4bit.forward; autograd/_functions.py, MatMul4Bit@0.50.2.
    """

    def __init__(self, n_in: int, n_out: int, kept: tuple[Tensor, ...], bias: Tensor | None, *, nested: bool) -> None:
        self.n_in, self.n_out, self.kept, self.bias, self.nested = n_in, n_out, kept, bias, nested

    def dequantized(self, tape: Tape) -> Tensor:
        """The weight in half precision; nested statistics are fp32 for that moment."""
        statistics = tape.new(self.n_in * self.n_out // 64, FULL) if self.nested else None
        weight = tape.new(self.n_in * self.n_out, HALF)
        del statistics
        return weight

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """The product, in the precision of ``x``."""

        def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
            weight = self.dequantized(tape)
            result = tape.new(given[0].count // self.n_out * self.n_in, HALF)
            del weight
            return (result,)

        came = x.width
        x = cast(tape, x, HALF)
        bias = None if self.bias is None else cast(tape, self.bias, HALF)
        node = node_for(tape, back, x)
        weight = self.dequantized(tape)
        result = tape.new(x.count // self.n_in * self.n_out, HALF)
        del weight
        result.node = node
        result = cast(tape, result, came)
        del bias
        return result


class EightBit:
    """bitsandbytes' Linear8bitLt: inputs in 8 bits, and backward by the whole weight in half precision.

    bitsandbytes/autograd/_functions.py, MatMul8bitLt; backends/cuda/ops.py, int8_vectorwise_quant, int8_linear_matmul,
    int8_mm_dequant@0.50.2. Of the few columns that have outliers (arXiv 2208.07339) there are none here.
    """

    def __init__(self, n_in: int, n_out: int, kept: tuple[Tensor, ...], bias: Tensor | None) -> None:
        self.n_in, self.n_out, self.kept, self.bias = n_in, n_out, kept, bias

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """The product, in the precision of ``x``. Its input stays as long as the graph, for it is no saved tensor."""

        def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
            weight = tape.new(self.n_in * self.n_out, width)
            factors = tape.new(self.n_out, FULL)
            del factors
            result = tape.new(given[0].count // self.n_out * self.n_in, width)
            result.reshaped = True
            del weight
            return (result,)

        width = x.width
        node = node_for(tape, back, x)
        codes, scales = self.quantized(tape, x)
        result = self.multiplied(tape, x.count // self.n_in, width)
        del codes, scales
        if node is not None:
            node.held = x.detached()
            result.node = node
        return result

    def quantized(self, tape: Tape, x: Tensor) -> tuple[Tensor, Tensor]:
        """The input in 8 bits, and a factor a token; outliers are looked for in 16 bits."""
        single = tape.new(x.count, HALF)
        scales = tape.new(x.count // self.n_in, FULL)
        codes = tape.new(x.count, 1)
        sizes = tape.new(x.count, HALF)
        large = tape.new(x.count, 1)
        del sizes
        found = tape.new(1, 1)
        del found, large, single
        return codes, scales

    def multiplied(self, tape: Tape, tokens: int, width: int) -> Tensor:
        """Sums in 32 bits, turned to fp16, and to the input's precision."""
        count = tokens * self.n_out
        sums = tape.new(count, 4)
        single = tape.new(count, HALF)
        result = tape.new(count, width)
        del sums, single
        return result


class Adapted:
    """LoRA as PEFT computes it: peft/tuners/lora/layer.py, Linear.forward; bnb.py, Linear4bit and 8bit@0.20.0."""

    a: Tensor
    b: Tensor

    def __init__(self, base: Plain | FourBit | EightBit, rank: int, *, dropout: bool) -> None:
        self.n_in, self.n_out, self.base, self.rank, self.dropout = base.n_in, base.n_out, base, rank, dropout

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """The base's product and the adapter's."""
        result = self.base(tape, x)
        if tape.bare:
            return result
        kept = result.width
        if isinstance(self.base, FourBit):
            result = copied(tape, result)
        if not tape.autocast or isinstance(self.base, Plain):
            x = cast(tape, x, self.a.width)
        inner = dropped(tape, x) if self.dropout else x
        low = matmul(tape, inner, self.a, self.rank)
        del inner
        output = matmul(tape, low, self.b, self.n_out)
        del low
        output = scaled(tape, output)
        return cast(tape, add(tape, result, output), kept)
