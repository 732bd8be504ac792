"""Softmax attention whose queries come with a gate: models/qwen3_5, Qwen3_5Attention.forward@5.16.1."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.autograd import fused
from advisor.allocations.autograd.attention import by_head, flash
from advisor.allocations.autograd.masks import efficient
from advisor.allocations.autograd.operations import copied, product, saving_result, split
from advisor.allocations.layers.mixer import Mixer, together
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor
    from advisor.allocations.shared import Batch, Tables


@record(eq=False)
class GatedMixer(Mixer):
    """Attention with norms of queries and keys, and its output times a sigmoid."""

    def __call__(self, tape: Tape, batch: Batch, tables: Tables, x: Tensor) -> Tensor:
        """Self attention."""
        repeats = batch.masked and self.attention.kv_heads < self.attention.heads
        query, gate, key, value = self.opened(tape, x, repeats=repeats)
        query, key, _ = self.rotate(tape, tables, query, key, repeats=repeats)
        attend = partial(efficient, mask=tables[3]) if batch.masked else flash
        output = attend(tape, batch.rows, batch.length, self.attention, (query, key, value))
        if not batch.masked:
            output = copied(tape, output)
        output = product(tape, output, saving_result(tape, gate))
        return self.ended(tape, output)

    def opened(self, tape: Tape, x: Tensor, *, repeats: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, gate, keys and values."""
        first, second, third = self.inputs
        three = fused.projected(tape, x, together(*self.inputs)) if "qkv" in self.kernels else None
        query, key, value = three or (first(tape, x), None, None)
        del three
        query, gate = split(tape, query, (query.count // 2,) * 2)
        gate = copied(tape, gate)
        query = self.normed(tape, query, 0)
        key = self.normed(tape, by_head(tape, key or second(tape, x)), 1)
        value = value or third(tape, x)
        return query, gate, key, by_head(tape, value) if repeats else value
