"""The kernels of flash-linear-attention 0.5.2 that a gated delta net calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL

if TYPE_CHECKING:
    from advisor.allocations.shared import Batch
    from advisor.models import Attention

CHUNK = 64
"""Tokens that are taken at once."""
Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def delta_rule(tape: Tape, batch: Batch, sizes: Attention, given: Five) -> Tensor:
    """ops/gated_delta_rule/chunk.py, ChunkGatedDeltaRuleFunction: queries, keys, values, slopes and strengths.

    What is no tensor in rows is copied. Backward computes states and new values again.
    """

    def back(node: Node, _given: list[Tensor]) -> list[Tensor | None]:
        found = gradients(tape, batch, sizes, given_sizes)
        node.drop_unpacked()
        return [one if needed else None for one, needed in zip(found, node.needs, strict=True)]

    query, key, value, slope, strength = given
    given_sizes = [(one.count, one.width) for one in given]
    node = node_for(tape, back, *given)
    copies = [alike(tape, one) for one in (query, key)] if sizes.heads == sizes.kv_heads else []
    rows = alike(tape, value)
    kept: list[Tensor] = []
    for one in (query, key):
        kept += [alike(tape, one), tape.new(batch.tokens * sizes.heads, FULL)]
    kept += [rows, tape.new(slope.count, FULL), strength]
    kept.append(tape.new(batch.tokens * sizes.heads * CHUNK, key.width))
    carried = carry(tape, batch, sizes, key, value)
    result = alike(tape, value)
    del carried, copies
    if node is not None:
        node.keep(tape, *kept)
    result.node = node
    return result


def gradients(tape: Tape, batch: Batch, sizes: Attention, given: list[tuple[int, int]]) -> list[Tensor]:
    """chunk_gated_delta_rule_bwd, on a card that takes all of a head's keys at once: an H100."""
    query, key, value, slope, strength = given
    again = carry(tape, batch, sizes, *(Size(*one) for one in (key, value)))
    of_new = tape.new(*value)
    of_states = states(tape, batch, sizes, key[1])
    of_new = tape.new(*value)
    of_query, of_key = tape.new(*query), tape.new(*key)
    parts = tape.new(*slope)
    of_left = tape.new(*key)
    of_slope = tape.new(*slope)
    del parts
    second, of_value = tape.new(*key), tape.new(*value)
    more, of_strength = tape.new(*slope), tape.new(*strength)
    del of_new
    of_slope = tape.new(*slope)
    del again, of_states, of_left, second, more
    of_query = tape.new(*query)
    of_key = tape.new(*key)
    return [of_query, of_key, of_value, of_slope, of_strength]


class Size:
    """Of a tensor."""

    def __init__(self, count: int, width: int) -> None:
        self.count, self.width = count, width


def carry(tape: Tape, batch: Batch, sizes: Attention, key: Tensor | Size, value: Tensor | Size) -> list[Tensor]:
    """Both sides of the rule, the state before each chunk, new values: recompute_w_u_fwd, common/chunk_delta_h.py."""
    both = [tape.new(one.count, one.width) for one in (key, value)]
    return [*both, states(tape, batch, sizes, key.width), tape.new(value.count, value.width)]


def states(tape: Tape, batch: Batch, sizes: Attention, width: int) -> Tensor:
    """A matrix a head before each chunk."""
    chunks = batch.rows * -(-batch.length // CHUNK)
    return tape.new(chunks * sizes.heads * sizes.state * (sizes.value_width // sizes.heads), width)


def alike(tape: Tape, x: Tensor) -> Tensor:
    """As large as another."""
    return tape.new(x.count, x.width)


def convolved_in_rows(tape: Tape, batch: Batch, x: Tensor, weight: Tensor) -> Tensor:
    """modules/conv/triton/ops.py, CausalConv1dFunction: backward convolves again, and sums the weight by its parts."""

    def back(node: Node, _given: list[Tensor]) -> list[Tensor | None]:
        again, of_x = tape.new(*sizes[0]), tape.new(*sizes[0])
        parts = tape.new(batch.rows * -(-batch.length // CHUNK) * sizes[1][0], FULL)
        of_weight = tape.new(sizes[1][0], FULL)
        if sizes[1][1] != FULL:
            of_weight = tape.new(*sizes[1])
        del parts, again
        node.drop_unpacked()
        return [one if needed else None for one, needed in zip((of_x, of_weight), node.needs, strict=True)]

    sizes = [(one.count, one.width) for one in (x, weight)]
    node = node_for(tape, back, x, weight)
    if node is not None:
        node.keep(tape, x, weight)
    result = tape.new(x.count, x.width)
    result.node = node
    return result
