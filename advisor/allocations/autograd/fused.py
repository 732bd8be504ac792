"""axolotl's fused LoRA kernels: base and adapter of several linears as one function.

axolotl/kernels/lora.py@0.19.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.linears import Adapted, FourBit
from advisor.allocations.autograd.operations import HALF, dropped

Three = tuple[Adapted, Adapted, Adapted]


def unpacked(tape: Tape, one: Adapted) -> Tensor | None:
    """The base's weight in half precision, where it is quantized."""
    return one.base.dequantized(tape) if isinstance(one.base, FourBit) else None


def halves(tape: Tape, *some: Adapted) -> list[Tensor]:
    """Half-precision copies of adapters; the adapters themselves where they are that."""
    weights = [weight for one in some for weight in (one.a, one.b)]
    return [tape.new(weight.count, HALF) if weight.width != HALF else weight.detached() for weight in weights]


def multiplied(tape: Tape, one: Adapted, tokens: int) -> Tensor:
    """matmul_lora: the base's product, to which the adapter's is added in place."""
    weight = unpacked(tape, one)
    result = tape.new(tokens * one.n_out, HALF)
    del weight
    copies = halves(tape, one)
    low = tape.new(tokens * one.rank, HALF)
    del low, copies
    return result


def adapter_gradients(tape: Tape, one: Adapted, tokens: int, kept: list[Tensor]) -> list[Tensor]:
    """Gradients of A and B in half precision; the output's gradient times B is kept to the end."""
    kept.append(tape.new(tokens * one.rank, HALF))
    found = [tape.new(one.a.count, HALF), tape.new(one.b.count, HALF)]
    low = tape.new(tokens * one.rank, HALF)
    del low
    return found


def _input_gradients(tape: Tape, some: Sequence[Adapted], count: int, *, dropout: bool) -> list[Tensor | None]:
    """The input's gradient, to which each linear adds in place, and that of the input after dropout."""
    result: Tensor | None = None
    for one in some:
        weight = unpacked(tape, one)
        result = tape.new(count, HALF) if result is None else result
        del weight
    return [result, tape.new(count, HALF) if dropout else None]


def _as_weights(tape: Tape, gradients: list[Tensor], some: Sequence[Adapted]) -> list[Tensor | None]:
    """Gradients in the adapters' own precision; those of frozen ones come to nothing."""
    weights = [weight for one in some for weight in (one.a, one.b)]
    for index, weight in enumerate(weights):
        if weight.trained and gradients[index].width != weight.width:
            gradients[index] = tape.new(gradients[index].count, weight.width)
    return list(gradients)


def inputs_of(tape: Tape, x: Tensor, some: Sequence[Adapted]) -> list[Tensor]:
    """What a function is given: its input, the same after dropout, and the adapters."""
    after = [dropped(tape, x)] if some[0].dropout else []
    return [x, *after, *(weight for one in some for weight in (one.a, one.b))]


def projected(tape: Tape, x: Tensor, some: Three) -> tuple[Tensor, Tensor, Tensor]:
    """LoRA_QKV: queries, keys and values."""

    def back(node: Node, given: list[Tensor]) -> list[Tensor | None]:
        kept: list[Tensor] = []
        found = [gradient for one in some for gradient in adapter_gradients(tape, one, tokens, kept)]
        reached = _input_gradients(tape, some, count, dropout=dropout)
        kept.clear()
        given.clear()
        node.drop_unpacked()
        others.clear()
        return [*(reached if dropout else reached[:1]), *_as_weights(tape, found, some)]

    def handed_on(first: bool) -> Tensor:
        def pick(_node: Node, given: list[Tensor]) -> list[Tensor | None]:
            if first:
                return [given.pop()]
            others.append(given.pop())
            return [None]

        result = outputs.pop(0)
        result.node = node_for(tape, pick, joint) if node is not None else None
        return result

    others: list[Tensor] = []
    dropout, count, tokens = some[0].dropout, x.count, x.count // some[0].n_in
    inputs = inputs_of(tape, x, some)
    node = node_for(tape, back, *inputs)
    outputs = [multiplied(tape, one, tokens) for one in some]
    copies = halves(tape, *some)
    if node is not None:
        node.keep(tape, *inputs[: 2 if dropout else 1], *copies)
    joint = x.detached()
    joint.node = node
    del copies, inputs
    return handed_on(True), handed_on(False), handed_on(False)


def output(tape: Tape, x: Tensor, one: Adapted) -> Tensor:
    """LoRA_O: the projection of attention's output."""

    def back(node: Node, given: list[Tensor]) -> list[Tensor | None]:
        kept: list[Tensor] = []
        found = adapter_gradients(tape, one, tokens, kept)
        reached = _input_gradients(tape, [one], count, dropout=False)
        if dropout:
            low = tape.new(count, HALF)
            reached[1] = tape.new(count, HALF)
            del low
        kept.clear()
        given.clear()
        node.drop_unpacked()
        return [*(reached if dropout else reached[:1]), *_as_weights(tape, found, [one])]

    dropout, count, tokens = one.dropout, x.count, x.count // one.n_in
    inputs = inputs_of(tape, x, [one])
    node = node_for(tape, back, *inputs)
    result = multiplied(tape, one, tokens)
    copies = halves(tape, one)
    if node is not None:
        node.keep(tape, *copies, *inputs[: 2 if dropout else 1])
    result.node = node
    return result


def mlp(tape: Tape, x: Tensor, some: Three) -> Tensor:
    """LoRA_MLP: gate, up, their product and down. Backward writes over gate, up and the product's gradient."""

    def back(node: Node, given: list[Tensor]) -> list[Tensor | None]:
        weight = unpacked(tape, down)
        inner = tape.new(tokens * down.n_in, HALF)
        del weight
        low = tape.new(tokens * down.rank, HALF)
        del low
        kept: list[Tensor] = []
        of_down, of_up, of_gate = (adapter_gradients(tape, one, tokens, kept) for one in (down, up, gate))
        reached = _input_gradients(tape, (up, gate), count, dropout=dropout)
        kept.clear()
        given.clear()
        node.drop_unpacked()
        del inner
        found = [*of_gate, *of_up, *of_down]
        del of_down, of_up, of_gate
        return [*(reached if dropout else reached[:1]), *_as_weights(tape, found, some)]

    gate, up, down = some
    dropout, count, tokens = gate.dropout, x.count, x.count // gate.n_in
    inputs = inputs_of(tape, x, some)
    node = node_for(tape, back, *inputs)
    sides = [multiplied(tape, one, tokens) for one in (gate, up)]
    inner = tape.new(tokens * down.n_in, HALF)
    result = multiplied(tape, down, tokens)
    copies = halves(tape, *some)
    if node is not None:
        node.keep(tape, *inputs[: 2 if dropout else 1], *sides, *copies)
    del inner
    result.node = node
    return result
