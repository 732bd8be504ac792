"""Softmax attention with its projections, as transformers 5.16.1 computes it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.autograd import fused, liger
from advisor.allocations.autograd.attention import by_head, by_position, flash, interleaved, rotated, sections
from advisor.allocations.autograd.linears import Adapted
from advisor.allocations.autograd.masks import efficient
from advisor.allocations.autograd.operations import cast, copied, dropped, joined, piece, scaled, split
from advisor.allocations.shared import Batch, Tables
from advisor.models.family import LIKE_LLAMA, Taped
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.autograd.linears import Linear
    from advisor.allocations.autograd.norms import Norm
    from advisor.models import Attention


@record(eq=False)
class Mixer:
    """Softmax attention with its projections: models/llama/modeling_llama.py, LlamaAttention.forward@5.16.1."""

    attention: Attention
    inputs: tuple[Linear, ...]
    """Of queries, keys and values each, or one for all."""
    output: Linear
    norms: tuple[Norm, Norm] | None = None
    """Of queries and keys, by head."""
    kernels: frozenset[str] = frozenset()
    """Which of axolotl's fused functions compute its linears: ``qkv``, ``o``."""
    way: Taped = LIKE_LLAMA
    """What it does otherwise than Llama's."""
    drops: bool = False
    """Whether dropout comes last: SeedOssAttention.forward@5.16.1."""
    liger: bool = False
    """Whether Liger's kernel rotates queries and keys."""

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """Self attention."""
        repeats = batch.masked and self.attention.kv_heads < self.attention.heads
        query, key, value = self.projected(tape, x, repeats=repeats)
        query, key, rest = self.rotate(tape, tables, query, key, repeats=repeats)
        if self.way.scales_queries:
            query = by_position(tape, query, tables[2])
        if self.norms is not None and self.way.norms == "after rotation":
            query = self.norms[0](tape, query)
            key = self.norms[1](tape, key)
        attend = partial(efficient, mask=tables[3]) if batch.masked else flash
        output = attend(tape, batch.rows, batch.length, self.attention, (query, key, value))
        if self.way.joins and not batch.masked:
            output = copied(tape, output)
        output = self.ended(tape, output)
        del rest
        return dropped(tape, output) if self.drops else output

    def ended(self, tape: Tape, output: Tensor) -> Tensor:
        """The last projection."""
        if "o" in self.kernels and isinstance(self.output, Adapted):
            return fused.output(tape, output, self.output)
        return self.output(tape, output)

    def rotate(
        self, tape: Tape, tables: Tables, query: Tensor, key: Tensor, *, repeats: bool
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Queries and keys by their positions, and what a name keeps to the end."""
        if self.liger:
            return *liger.rotated(tape, query, key, tables, repeats=repeats), ()
        match self.way.tables:
            case "none":
                return query, key, ()
            case "interleaved":
                tables = interleaved(tape, tables, query.width)
            case "sections":
                tables = sections(tape, tables)
            case _:
                pass
        if not self.way.joins:
            of_query, of_key = rotated(tape, query, tables), rotated(tape, key, tables)
            if self.way.tables != "fp32":
                return of_query, of_key, ()
            # Products with fp32 tables are fp32: both are there before the first of them is cast back.
            return cast(tape, of_query, query.width), cast(tape, of_key, key.width), ()
        first, second = self.parts(tape, query), self.parts(tape, key)
        if self.way.joins == "each":
            # A rotated part lives until it is joined, so the queries' is freed before the keys are rotated.
            return (
                joined(tape, rotated(tape, first[0], tables), first[1]),
                joined(tape, rotated(tape, second[0], tables), second[1]),
                (),
            )
        of_query, of_key = rotated(tape, first[0], tables), rotated(tape, second[0], tables)
        # Local names of the model's method hold them until attention has made its last projection.
        keeps = (of_query, of_key, first[1], second[1]) if self.way.joins == "both kept" else ()
        query = joined(tape, of_query, first[1])
        if self.way.joins != "both at once":
            # The result is bound to the name of the rotated part, which is freed before the keys are joined.
            del of_query
        return query, joined(tape, of_key, second[1]), keeps

    def parts(self, tape: Tape, x: Tensor) -> tuple[Tensor, Tensor]:
        """What is rotated, and what is not: views."""
        count = x.count // self.attention.head_dim * rotary_dim(self.attention)
        first = x if count == x.count else piece(tape, x, count)  # Python's indexing returns the tensor itself
        return first, piece(tape, x, x.count - count)

    def projected(self, tape: Tape, x: Tensor, *, repeats: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, with their norms; values whose gradient is a sum over heads are copied, too."""
        if len(self.inputs) == 1:
            return self.cut(tape, self.inputs[0](tape, x), repeats=repeats)
        first, second, third = self.inputs
        if "qkv" in self.kernels:
            query, key, value = fused.projected(tape, x, together(first, second, third))
            query = self.headed(tape, query, 0)
            key = self.headed(tape, key, 1)
        else:
            query = self.early(tape, first(tape, x), 0)
            key = self.early(tape, second(tape, x), 1)
            value = third(tape, x)
            if self.way.heads_last:
                query, key = by_head(tape, query), by_head(tape, key)
        if repeats:
            value = by_head(tape, value)
        if self.way.norms == "in turn":
            query = self.normed(tape, query, 0)
            key = self.normed(tape, key, 1)
        return query, key, value

    def early(self, tape: Tape, x: Tensor, index: int) -> Tensor:
        """A projection, before the next one comes."""
        if not self.way.heads_last:
            return self.headed(tape, x, index)
        return self.normed(tape, x, index) if self.way.norms == "before heads" else x

    def headed(self, tape: Tape, x: Tensor, index: int) -> Tensor:
        """Queries or keys by head, and through their norm where that comes at once."""
        x = x if self.liger or self.way.tables == "none" else by_head(tape, x)
        if self.way.scales_keys and index == 1:
            return scaled(tape, x)
        return self.normed(tape, x, index) if self.way.norms == "at once" else x

    def normed(self, tape: Tape, x: Tensor, index: int) -> Tensor:
        """Queries or keys through their norm, where they have one."""
        return x if self.norms is None else self.norms[index](tape, x)

    def cut(self, tape: Tape, all_three: Tensor, *, repeats: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of one projection: views of it."""
        one = self.attention
        rows = all_three.count // (one.query_width + one.key_width + one.value_width)
        counts = [rows * width for width in (one.query_width, one.key_width, one.value_width)]
        if self.way.splits:
            query, key, value = split(tape, by_head(tape, all_three), counts)
            return query, key, value
        query, key, value = (piece(tape, all_three, count) for count in counts)
        return by_head(tape, query), by_head(tape, key), by_head(tape, value) if repeats else value


def rotary_dim(attention: Attention) -> int:
    """Elements of a head that are rotated."""
    return attention.head_dim if attention.rotated is None else attention.rotated


def together(*some: Linear) -> tuple[Adapted, Adapted, Adapted]:
    """Three linears that a fused function computes: all have adapters."""
    first, second, third = (one for one in some if isinstance(one, Adapted))
    return first, second, third
