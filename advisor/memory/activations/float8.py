"""Linear layers that multiply in fp8: they keep what others do, and cast in backward what they have kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.run import Float8, Run

CASTING: dict[Float8, int] = {"tensorwise": 8, "rowwise": 8, "rowwise_with_gw_hp": 3}
"""Bytes of each element of the widest input on its way to fp8, fp32 steps included: traced from torchao 0.17.0's
Float8Linear, which compiling fuses. The last recipe multiplies the gradients of weights in bf16."""


def casting_to_float8(run: Run, block: Block) -> int:
    """Bytes of casts at the widest moment of a layer, beyond what its linears hold in bf16; 0 without fp8."""
    if run.float8 is None or run.adapter is not None:
        return 0
    weight = max((one.n_in * one.n_out for one in block.linears), default=0)
    width = max((max(one.n_in, one.n_out) for one in block.linears), default=0)
    return weight + CASTING[run.float8] * width * run.tokens
