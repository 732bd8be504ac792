"""What all rooms speak of: a batch, its tables, a feed-forward, the axes of positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.autograd.autograd import Tape, Tensor

AXES = 3
"""Time, height and width."""
Tables = tuple["Tensor", ...]
"""Cosines and sines; the positions, which layers are given and do not read; and the mask, if there is one."""
Feed = Callable[["Tape", "Tensor"], "Tensor"]
"""An MLP, or experts."""


@record(eq=False)
class Batch:
    """Rows of one length, and how a forward over them is kept for backward."""

    rows: int
    length: int
    checkpointing: str = ""
    """``reentrant``, ``non-reentrant`` or none."""
    masked: bool = False
    """Whether sdpa gets a mask."""
    columns: int = 1
    """Tensors of as many whole numbers as there are tokens."""
    others: tuple[int, ...] = ()
    """Bytes of what else a processor returns for a batch."""
    separate_chosen_rejected: bool = False
    """Whether chosen and rejected answers are tensors of their own, of half the rows each."""
    ids: Tensor | None = None
    """The tokens, where a trained embedding alone keeps them."""

    @property
    def column(self) -> int:
        """Whole numbers of one such tensor."""
        return self.tokens // 2 if self.separate_chosen_rejected else self.tokens

    @property
    def tokens(self) -> int:
        """Tokens of all rows."""
        return self.rows * self.length
