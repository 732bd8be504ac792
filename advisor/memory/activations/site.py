"""A place in a layer where linears read one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.record import record

if TYPE_CHECKING:
    from advisor.models.blocks import LinearShape


@record(eq=False)
class Site:
    """A tensor that linears read: its width as units of a symbol, its linears, and what else is known of it."""

    symbol: str
    linears: tuple[LinearShape, ...]
    source: int
    """Bytes per element."""
    kept_anyway: bool = False
    """What made it keeps it too."""
    units: int = 1
    fused: frozenset[str] = frozenset()
    """Names of linears of the layer that axolotl's kernels compute."""
