"""Attention under a mask: how the mask is made, and torch's memory-efficient kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, autocast

if TYPE_CHECKING:
    from advisor.models import Attention


def causal_mask(tape: Tape, rows: int, length: int, *, windowed: bool) -> Tensor:
    """transformers/masking_utils.py, sdpa_mask, padding_mask_function, sliding_window_overlay@5.16.1."""
    padding = tape.new(rows * length, 1)
    batch = tape.new(rows, LONG)
    indices: list[Tensor] = []
    for _ in range(2):
        counted = tape.new(length, LONG)
        indices.append(tape.new(length, LONG))
        del counted
    seen = _in_window(tape, length) if windowed else None
    before = tape.new(length * length, 1)
    both = tape.new(length * length, 1)
    del before, seen
    seen = tape.new(length * length, 1) if windowed else both
    del both
    kept = tape.new(rows * length, 1)
    mask = tape.new(rows * length * length, 1)
    del padding, batch, indices, seen, kept
    return mask


def whether_padded(tape: Tape, tokens: int) -> None:
    """The mask as flags, of which all are set: masking_utils.py, flash_attention_mask@5.16.1."""
    flags = tape.new(tokens, 1)
    del flags


def image_blocks(tape: Tape, rows: int, length: int) -> Tensor:
    """The number of each token's image; FlashAttention makes nothing of it, and masks are looked at three times.

    models/gemma3/modeling_gemma3.py, get_block_sequence_ids_for_mask, create_masks_for_vision_model@5.16.1.
    """
    tokens = rows * length
    inside, before = tape.new(tokens, 1), tape.new(tokens + rows, 1)
    no_image = tape.new(tokens, 1)
    first = tape.new(tokens, 1)
    del no_image
    ones = tape.new(tokens, FULL)
    counted = tape.new(tokens, LONG)
    del ones
    numbers = tape.new(tokens, LONG)
    del counted
    result = tape.new(tokens, LONG)
    del inside, before, first, numbers
    for _ in range(3):
        whether_padded(tape, tokens)
    return result


def _in_window(tape: Tape, length: int) -> Tensor:
    """Which tokens are near enough."""
    start = tape.new(length, LONG)
    inside = tape.new(length * length, 1)
    del start
    both = tape.new(length * length, 1)
    del inside
    return both


def efficient(
    tape: Tape, rows: int, length: int, sizes: Attention, qkv: tuple[Tensor, Tensor, Tensor], *, mask: Tensor
) -> Tensor:
    """torch's memory-efficient attention, to which keys and values go with all heads, and the mask as numbers.

    transformers/integrations/sdpa_attention.py, repeat_kv@5.16.1; aten/src/ATen/native/transformers/attention.cpp,
    convert_boolean_attn_mask; cuda/attention.cu, attention_backward.cu@2.13.0, for heads up to 128 wide.
    """

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        gradients = [tape.new(count, width) for _ in range(3)]
        sums = tape.new(rows * length * sizes.heads, FULL)
        exact = tape.new(-(-length // 128) * 128 * rows * sizes.heads * (-(-sizes.head_dim // 32) * 32), FULL)
        del sums, exact
        return gradients[0], gradients[1], gradients[2]

    query, key, value = qkv
    groups = sizes.heads // sizes.kv_heads
    key, value = repeated(tape, key, groups), repeated(tape, value, groups)
    query, key, value = autocast(tape, query), autocast(tape, key), autocast(tape, value)
    count, width = query.count, query.width
    hidden = tape.new(mask.count, 1)
    bias = tape.new(mask.count, width)
    del hidden
    node = node_for(tape, back, query, key, value)
    result = tape.new(count, width)
    statistics = tape.new(rows * sizes.heads * (-(-length // 32) * 32), FULL) if node is not None else None
    if node is not None and statistics is not None:
        node.keep(tape, query, key, value, bias, result.detached(), statistics)
    result.node = node
    return result


def repeated(tape: Tape, x: Tensor, groups: int) -> Tensor:
    """Keys or values of as many heads as there are queries: a copy, whose gradients are summed."""

    def back(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, given[0].width),)

    if groups == 1:
        return x
    count = x.count
    node = node_for(tape, back, x)
    result = tape.new(count * groups, x.width)
    result.node = node
    return result
