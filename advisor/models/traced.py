"""What a trace of the real modules has measured of a layer, and under which facts."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from advisor.record import record

if TYPE_CHECKING:
    from fractions import Fraction


@record
class AdapterFacts:
    """The low-rank adapter that was in place; ``width`` are bytes per element of its weights."""

    rank: int
    dropout: bool
    width: int
    targets: tuple[str, ...] = ()
    targets_pattern: bool = False
    target_linear: bool = False
    rank_pattern: tuple[tuple[str, int], ...] = ()
    parameters: tuple[str, ...] = ()
    """Stacked experts with adapters of their own, which are not traced."""
    casts: bool = True
    """Whether the input is cast to the adapter's type: not on bitsandbytes' linears under autocast."""


@record
class Facts:
    """Everything of a run that decides what its layers keep, besides its model and its number of tokens."""

    single: bool
    """Computed in fp32, not in half precision (bf16 and fp16 are equally wide)."""
    autocast: bool
    fp32_weights: bool
    fp32_stream: bool
    """Embeddings, norms and head in fp32, and so the residual stream."""
    attention: Literal["eager", "sdpa", "flash"]
    padded: bool
    """sdpa gets a mask."""
    beyond: int
    """The largest window or chunk of the config that is no longer than a row; 0 if there is none."""
    adapter: AdapterFacts | None = None

    def likeness(self, other: Facts) -> int:
        """In how many facts the two agree."""
        return sum(getattr(self, one.name) == getattr(other, one.name) for one in fields(self))


@record
class Growth:
    """Bytes at three lengths of a single row: through them goes ``c + a T + b T S`` for T tokens in rows of S."""

    points: tuple[tuple[int, int], ...]

    def at(self, tokens: int, length: int) -> int:
        """Bytes for ``tokens`` in rows of ``length``."""
        fixed, linear, square = coefficients(self.points)
        return round(fixed + tokens * (linear + square * length))

    def most(self, tokens: int, length: int) -> int:
        """Likewise for a peak, whose widest moment may change with the length: lines between the points."""
        (x, first), *_ = self.points
        if length <= x:
            return tokens * first // x
        rates = [(one, bytes_ / one) for one, bytes_ in self.points]
        (low, lower), (high, upper) = next((pair for pair in pairwise(rates) if length <= pair[1][0]), rates[-2:])
        return round(tokens * (lower + (upper - lower) * (length - low) / (high - low)))

    def written(self, length: int) -> str:
        """The arithmetic per token, with its result."""
        _, linear, square = coefficients(self.points)
        told = f"{number(linear)} + {number(square)} S" if square else number(linear)
        return f"{told} = {round(linear + square * length):,} B/token" if square else f"{told} B/token"


def number(value: Fraction) -> str:
    """A coefficient, whole where it is."""
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.2f}"


@lru_cache(maxsize=1024)
def coefficients(points: tuple[tuple[int, int], ...]) -> tuple[Fraction, Fraction, Fraction]:
    """The parabola through three points, in rising powers of the length."""
    from fractions import Fraction

    (x, y), (u, v), (w, z) = points
    first, second = Fraction(v - y, u - x), Fraction(z - v, w - u)
    square = (second - first) / (w - x)
    linear = first - square * (x + u)
    return y - linear * x - square * x * x, linear, square


@record
class LayerTrace:
    """One layer under one set of facts.

    What autograd keeps of it; the most that its backward holds in addition; the most that its forward holds without
    gradients; and its input, which checkpointing keeps.
    """

    facts: Facts
    saved: Growth
    working: Growth
    forward: Growth
    entered: Growth


@record
class ModelTrace:
    """Of which transformers a model was traced, and what is kept outside of its layers, logits left out."""

    version: str
    windows: tuple[int, ...] = ()
    """Windows and chunks that its config names."""
    outside: tuple[tuple[Facts, Growth], ...] = ()
