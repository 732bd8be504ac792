"""Rotation of queries and keys, and the kernels of attention."""

from __future__ import annotations

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, alike, autocast, back_alike, cast
from advisor.allocations.shared import AXES
from advisor.models import Attention


def rotated(tape: Tape, x: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
    """``x * cos + rotate_half(x) * sin``: models/llama/modeling_llama.py, apply_rotary_pos_emb@5.16.1."""

    def back(node: Node, given: list[Tensor]) -> tuple[Tensor]:
        of_half = as_came(tape.new(count, width))
        node.take(1)
        half = tape.new(count // 2, came)
        second = tape.new(count, came)
        del half
        first = tape.new(count, came)
        del of_half
        if not tape.adds_in_place:
            first = tape.new(count, came)
            second = first
        straight = as_came(tape.new(count, width))
        given.clear()
        node.take()
        total = second if tape.adds_in_place else tape.new(count, came)
        del first, second, straight
        return (total,)

    def as_came(gradient: Tensor) -> Tensor:
        return gradient if width == came else tape.new(count, came)

    count, came, width = x.count, x.width, max(x.width, tables[0].width)
    node = node_for(tape, back, x)
    straight = tape.new(count, width)
    half = tape.new(count // 2, x.width)
    half_rotated = tape.new(count, x.width)
    del half
    crossed = tape.new(count, width)
    del half_rotated
    result = tape.new(count, width)
    del straight, crossed
    if node is not None:
        node.keep(tape, *tables[:2])
    result.node = node
    return result


def interleaved(tape: Tape, tables: tuple[Tensor, ...], width: int) -> tuple[Tensor, ...]:
    """Cosines and sines with each entry twice in a row: models/glm4/modeling_glm4.py, apply_rotary_pos_emb@5.16.1."""
    return tape.new(tables[0].count, width), tape.new(tables[1].count, width)


def sections(tape: Tape, tables: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A third of each axis' tables: models/qwen2_vl/modeling_qwen2_vl.py, apply_multimodal_rotary_pos_emb@5.16.1."""
    return tuple(tape.new(one.count // AXES, one.width) for one in tables[:2])


def by_position(tape: Tape, x: Tensor, positions: Tensor) -> Tensor:
    """Queries by a factor of their positions: models/ministral3, get_llama_4_attn_scale@5.16.1."""
    scaling = tape.new(positions.count, FULL)
    for _ in range(5):  # a floor, two sums, a logarithm and a product
        scaling = tape.new(positions.count, FULL)
    factors = cast(tape, scaling, x.width)
    del scaling
    result = alike(tape, x)
    if result.node is not None:
        result.node.keep(tape, factors)
    return result


def by_head(tape: Tape, x: Tensor) -> Tensor:
    """A projection seen head by head. Its gradient is copied, for that of a rotation is not laid out as it is."""
    node = node_for(tape, back_alike(tape), x)
    result = x.detached()
    result.node = node
    return result


def flash(
    tape: Tape, rows: int, length: int, sizes: Attention, qkv: tuple[Tensor, Tensor, Tensor], pieces: int = 0
) -> Tensor:
    """FlashAttention 2, of its package or of torch: csrc/flash_attn/flash_api.cpp, mha_bwd, mha_varlen_bwd@2.8.3.

    Backward sums queries' gradients in fp32, and makes those of keys and values for all heads before it adds them up.
    A row of several ``pieces`` has 128 more for each of them.
    """

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        padded = (length + 128 * pieces if pieces else -(-length // 128) * 128) * rows * sizes.heads
        gradients = [tape.new(one, width) for one in counts]
        sums = tape.new(padded, FULL)
        exact = tape.new(padded * (-(-sizes.head_dim // 32) * 32), FULL)
        if sizes.kv_heads != sizes.heads:
            keys, values = tape.new(counts[0], width), tape.new(counts[0], width)
            del keys, values
        del sums, exact
        return gradients[0], gradients[1], gradients[2]

    query, key, value = (autocast(tape, one) for one in qkv)
    counts, width = (query.count, key.count, value.count), query.width
    node = node_for(tape, back, query, key, value)
    result = tape.new(query.count, width)
    statistics = tape.new(rows * length * sizes.heads, FULL)
    if node is not None:
        node.keep(tape, query, key, value, result.detached(), statistics)
    result.node = node
    return result
