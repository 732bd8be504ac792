"""Routed experts by grouped products: transformers/integrations/moe.py, grouped_mm_experts_forward@5.16.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.norms import times_weight
from advisor.allocations.autograd.operations import (
    FULL,
    LONG,
    activation,
    add,
    back_alike,
    cast,
    into_zeros,
    product,
    saving_result,
    split,
    squared_relu,
)
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.layers.layers import Gated, PlainFeed

INT = 4
Route = Callable[["Tape", "Tensor"], "tuple[Tensor, Tensor, Tensor]"]
"""From tokens to their logits, which a name keeps, and the weights and numbers of the experts that each takes."""
Stack = Callable[["Tape"], "Tensor"]
"""The weights of one side of all experts, as they multiply."""


@record(eq=False)
class Routed:
    """Experts, and one that every token passes: models/glm4_moe/modeling_glm4_moe.py, Glm4MoeMoE.forward@5.16.1."""

    route: Route
    gate_up: Stack
    down: Stack
    hidden: int
    width: int
    count: int
    shared: Gated | PlainFeed | None = None
    gate: Linear | None = None
    """Of the one that every token passes, which then comes first: Qwen3_5MoeSparseMoeBlock.forward@5.16.1."""
    narrow: tuple[Linear, Linear] | None = None
    """What makes tokens narrower before the experts, and wide again after them: NemotronHMoE.forward@5.16.1."""
    halves: bool = True
    """Whether the first product gives gate and up; else there is no gate, and a squared ReLU."""

    def __call__(self, tape: Tape, x: Tensor) -> Tensor:
        """What it adds to the stream."""
        if self.gate is not None and self.shared is not None:
            return self.gated_first(tape, x, self.shared, self.gate)
        logits, weights, chosen = self.route(tape, x)
        found = self.narrowed(tape, x, weights, chosen)
        if self.shared is not None:
            found = add(tape, found, self.shared(tape, x))
        del logits
        return found

    def narrowed(self, tape: Tape, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """The experts, between their two linears."""
        if self.narrow is None:
            return self.computed(tape, x, weights, chosen)
        hidden = self.narrow[0](tape, x)
        hidden = self.computed(tape, hidden, weights, chosen)
        return self.narrow[1](tape, hidden)

    def gated_first(self, tape: Tape, x: Tensor, shared: Gated | PlainFeed, gate: Linear) -> Tensor:
        """The MLP that every token passes, then experts, then its gate."""
        passed = shared(tape, x)
        logits, weights, chosen = self.route(tape, x)
        found = self.computed(tape, x, weights, chosen)
        passed = times_weight(tape, saving_result(tape, gate(tape, x)), passed)
        found = add(tape, found, passed)
        del logits
        return found

    def computed(self, tape: Tape, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Tokens in the order of their experts through both products, weighted, put back and added up."""
        pairs, tokens = chosen.count, x.count // self.hidden
        by_expert, order = tape.new(pairs, LONG), tape.new(pairs, LONG)
        inner = gathered(tape, x, tape.new(pairs, LONG), pairs * self.hidden)
        factors = gathered(tape, weights, order, pairs)
        numbers, counts = tape.new(pairs, INT), tape.new(self.count, INT)
        ends, none = tape.new(self.count, INT), tape.new(pairs, 1)
        inner = masked(tape, inner, none)
        first = self.gate_up(tape)
        inner, entered = grouped(tape, inner, first, ends, (1 + self.halves) * pairs * self.width), inner
        inner = self.gated(tape, inner)
        second = self.down(tape)
        inner = grouped(tape, inner, second, ends, pairs * self.hidden)
        result = weighted(tape, inner, factors)
        result = masked(tape, result, none)
        back = tape.new(pairs, LONG)
        counted = tape.new(pairs, LONG)
        del counted
        result = gathered(tape, result, back, result.count)
        added = _added_up(tape, result, tokens * self.hidden)
        final = cast(tape, added, x.width)
        del by_expert, numbers, counts, entered, first, second  # torch's cache of what is unpacked holds both
        return final

    def gated(self, tape: Tape, whole: Tensor) -> Tensor:
        """``_default_apply_gate``: both halves are views."""
        if not self.halves:
            return squared_relu(tape, whole)
        gate, up = split(tape, whole, (whole.count // 2,) * 2)
        return product(tape, activation(tape, gate), up)


def gathered(tape: Tape, x: Tensor, index: Tensor, count: int) -> Tensor:
    """Rows by their numbers. Backward puts them into zeros: FunctionsManual.cpp, index_backward@2.13.0."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (into_zeros(tape, *size),)

    size = x.count, x.width
    node = node_for(tape, back, x)
    if node is not None:
        node.keep(tape, index)
    result = tape.new(count, x.width)
    result.node = node
    return result


def masked(tape: Tape, x: Tensor, mask: Tensor) -> Tensor:
    """``masked_fill_``: the tensor itself, whose gradient is masked, too."""

    node = node_for(tape, back_alike(tape), x)
    if node is not None:
        node.keep(tape, mask)
    result = x.detached()
    result.node = node
    return result


def grouped(tape: Tape, x: Tensor, stack: Tensor, ends: Tensor, n_out: int) -> Tensor:
    """Each expert's tokens by its matrix; autocast does not reach it, so inputs are cast to the weights' precision."""

    def back(node: Node, _given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        of_stack = tape.new(size, width) if node.needs[1] else None
        return tape.new(count, width) if node.needs[0] else None, of_stack

    x = cast(tape, x, stack.width)
    count, size, width = x.count, stack.count, stack.width
    node = node_for(tape, back, x, stack)
    if node is not None:
        node.keep(tape, *((x,) if node.needs[1] else ()), *((stack,) if node.needs[0] else ()), ends)
    result = tape.new(n_out, width)
    result.node = node
    return result


def weighted(tape: Tape, x: Tensor, factors: Tensor) -> Tensor:
    """Rows by a factor each; the factors' gradient is made first, and summed last."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        count, width = given[0].count, given[0].width
        of_factors = tape.new(count, width) if node.needs[1] else None
        of_x = tape.new(count, width) if node.needs[0] else None
        node.drop_unpacked()
        if of_x is not None and of_x.width != came:
            of_x = tape.new(count, came)
        if of_factors is None:
            return of_x, None
        summed = tape.new(pairs, width)
        del of_factors
        return of_x, summed if width == narrow else tape.new(pairs, narrow)

    pairs, narrow, came = factors.count, factors.width, x.width
    node = node_for(tape, back, x, factors)
    if node is not None:
        node.keep(tape, *((x,) if node.needs[1] else ()), *((factors,) if node.needs[0] else ()))
    result = tape.new(x.count, max(x.width, factors.width))
    result.node = node
    return result


def _added_up(tape: Tape, x: Tensor, count: int) -> Tensor:
    """The sum over a token's experts, which autocast makes fp32; its gradient is repeated for each."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(whole, came),)

    whole, came = x.count, x.width
    node = node_for(tape, back, x)
    result = tape.new(count, FULL if tape.autocast else x.width)
    result.node = node
    return result
