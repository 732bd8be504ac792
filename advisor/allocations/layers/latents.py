"""Multi-head latent attention: models/glm4_moe_lite/modeling_glm4_moe_lite.py, Glm4MoeLiteAttention@5.16.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.attention import by_head, by_position, flash
from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import add, copied, joined, piece, split
from advisor.allocations.autograd.xielu import subtracted
from advisor.record import record, replace

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.allocations.layers.loading import Loader
    from advisor.allocations.shared import Batch, Tables
    from advisor.models import Attention, Block


@record(eq=False)
class Latent:
    """Queries, and keys and values, each out of a narrow projection; one key of positions for all heads."""

    attention: Attention
    query_down: Linear
    query_norm: Norm
    query_up: Linear
    down: Linear
    norm: Norm
    up: Linear
    output: Linear
    drops: bool = False
    scales: bool = False
    """Whether queries are scaled by their positions: models/mistral4, Mistral4Attention.forward@5.16.1."""

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """Self attention."""
        one, tokens = self.attention, batch.tokens
        rotary_dim = one.rotated or 0
        query = self.query_up(tape, self.query_norm(tape, self.query_down(tape, x)))
        plain, query = one.heads * (one.head_dim - rotary_dim) * tokens, by_head(tape, query)
        passed, rotating = split(tape, query, (plain, one.heads * rotary_dim * tokens))
        both = self.down(tape, x)
        latent, key = split(tape, both, (self.up.n_in * tokens, rotary_dim * tokens))
        latent = self.norm(tape, latent)
        halves = [piece(tape, one, one.count // 2) for one in (rotating, rotating, key, key)]
        rotating = _in_pairs(tape, halves[0], halves[1], tables)
        key = _in_pairs(tape, halves[2], halves[3], tables)
        halves.clear()
        first = joined(tape, passed, rotating)
        if self.scales:
            first = by_position(tape, first, tables[2])
        keys, values = self.expanded(tape, latent, key, plain)
        output = flash(tape, batch.rows, batch.length, one, (first, keys, values))
        output = copied(tape, output)
        output = self.output(tape, output)
        del query, both, latent, key, passed, rotating
        return output

    def expanded(self, tape: Tape, latent: Tensor, key: Tensor, plain: int) -> tuple[Tensor, Tensor]:
        """Keys and values of all heads."""
        both = by_head(tape, self.up(tape, latent))
        own, values = split(tape, both, (plain, both.count - plain))
        return filled(tape, own, repeated(tape, key, self.attention.heads)), values


def _in_pairs(tape: Tape, even: Tensor, odd: Tensor, tables: Tables) -> Tensor:
    """``apply_rotary_pos_emb_interleave``: even and odd elements are slices, of queries and of keys before all else."""
    first = subtracted(tape, _by_table(tape, even, tables[0]), _by_table(tape, odd, tables[1]))
    second = add(tape, _by_table(tape, odd, tables[0]), _by_table(tape, even, tables[1]))
    return joined(tape, first, second)


def _by_table(tape: Tape, x: Tensor, table: Tensor) -> Tensor:
    """A product with cosines or sines."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, width),)

    count, width = x.count, x.width
    node = node_for(tape, back, x)
    if node is not None:
        node.keep(tape, table)
    result = tape.new(count, max(width, table.width))
    result.node = node
    return result


def repeated(tape: Tape, x: Tensor, heads: int) -> Tensor:
    """One key seen by all heads, whose gradients are summed."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, width),)

    count, width = x.count, x.width
    result = Tensor(x.storage, count * heads, width)
    result.node = node_for(tape, back, x)
    return result


def filled(tape: Tape, left: Tensor, right: Tensor) -> Tensor:
    """A new tensor into which both are copied: torch/csrc/autograd/functions/tensor.cpp, CopySlices::apply@2.13.0."""

    def back_of_first(_node: Node, given: list[Tensor]) -> tuple[Tensor]:
        whole = tape.new(count, width)
        result = tape.new(left_count, width)
        given.clear()
        del whole
        return (result,)

    def back_of_second(_node: Node, given: list[Tensor]) -> tuple[Tensor, Tensor]:
        whole = tape.new(count, width)
        result = tape.new(right_count, width)
        zeros = tape.new(right_count, width)
        given.clear()
        del zeros
        return whole, result

    left_count, right_count, width = left.count, right.count, left.width
    count = left_count + right_count
    result = tape.new(count, width)
    result.node = node_for(tape, back_of_first, left)
    result.node = node_for(tape, back_of_second, result, right)
    return result


def latent(loader: Loader, block: Block, biased: set[str]) -> Latent:
    """Such attention, with its weights in the order of its modules."""
    assert block.attention is not None, "known_layers.is_latent"
    shapes = {shape.name: shape for shape in block.linears}

    def linear(name: str) -> Linear:
        return loader.linear(shapes[name], bias=name in biased)

    query_down = linear("q_a_proj")
    query_norm = loader.norm(query_down.n_out, loader.norm_module, "rms")
    query_up, down = linear("q_b_proj"), linear("kv_a_proj_with_mqa")
    rank = shapes["kv_b_proj"].n_in
    norm = loader.norm(rank, loader.norm_module, "rms")
    up, output = linear("kv_b_proj"), linear("o_proj")
    attention = replace(block.attention, rotated=down.n_out - rank)
    scales = loader.taped.scales_queries
    return Latent(attention, query_down, query_norm, query_up, down, norm, up, output, scales=scales)
