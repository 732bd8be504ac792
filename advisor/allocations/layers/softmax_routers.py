"""Routers that turn logits to probabilities first, as transformers 5.16.1 computes them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, cast, into_zeros, matmul, saving_result

if TYPE_CHECKING:
    from advisor.allocations.layers.experts import Route

WAYS = frozenset({"softmax", "softmax shares", "softmax fp32 shares"})


def softmax(weight: Tensor, experts: int, each: int, way: str) -> Route:
    """models/olmoe, OlmoeTopKRouter; models/qwen3_5_moe, Qwen3_5MoeTopKRouter; models/mixtral, MixtralTopKRouter."""
    return partial(_by_softmax, weight=weight, experts=experts, each=each, way=way)


def _by_softmax(
    tape: Tape, x: Tensor, weight: Tensor, experts: int, each: int, way: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, and weights and numbers of the chosen experts."""
    tokens = x.count * experts // weight.count
    logits = matmul(tape, x, weight, experts)
    chances = saving_result(tape, cast(tape, logits, FULL))
    weights, chosen = best(tape, chances, tokens * each)
    if way != "softmax":
        weights = quotient(tape, weights, total(tape, weights, tokens), in_place=True)
    if way != "softmax fp32 shares":
        weights = cast(tape, weights, logits.width)
    del chances
    return logits, weights, chosen


def best(tape: Tape, x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest and their places. Backward puts gradients into zeros: value_selecting_reduction_backward."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (into_zeros(tape, whole, FULL),)

    whole = x.count
    node = node_for(tape, back, x)
    values, places = tape.new(count, FULL), tape.new(count, LONG)
    if node is not None:
        node.keep(tape, places)
    values.node = node
    return values, places


def total(tape: Tape, weights: Tensor, tokens: int) -> Tensor:
    """The sum of a token's weights, whose gradient is a view."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (given.pop(),)

    node = node_for(tape, back, weights)
    result = tape.new(tokens, FULL)
    result.node = node
    return result


def quotient(tape: Tape, weights: Tensor, total: Tensor, *, in_place: bool) -> Tensor:
    """Weights over their sum; where that is written over them, autograd keeps a copy."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        once = tape.new(count, wide)
        twice = tape.new(count, wide)
        negated = tape.new(count, given[0].width)
        of_total = tape.new(count, wide)
        del once, twice, negated
        of_weights = tape.new(count, wide)
        node.drop_unpacked()
        if width != wide:
            of_weights = tape.new(count, width)
        reduced = tape.new(tokens, wide)
        del of_total
        given.clear()
        return of_weights, reduced

    count, tokens, width, wide = weights.count, total.count, weights.width, max(weights.width, total.width)
    node = node_for(tape, back, weights, total)
    if node is not None:
        node.keep(tape, tape.new(count, width) if in_place else weights, total.detached())
    result = weights.detached() if in_place else tape.new(count, wide)
    result.node = node
    return result
