"""The answer: seconds of one optimizer step, of what they are made, and how far they can be trusted."""

from functools import cached_property
from typing import Literal

from advisor.record import record

Kind = Literal["compute", "element-wise", "link", "host", "optimizer", "rollouts"]
KINDS: tuple[Kind, ...] = ("compute", "element-wise", "link", "host", "optimizer", "rollouts")
Confidence = Literal["usual", "low"]


@record
class TimeTerm:
    """One addend of a step: its seconds, the arithmetic as text, and where the formula comes from."""

    name: str
    kind: Kind
    seconds: float
    formula: str
    source: str


@record
class StepTime:
    """Seconds of one optimizer step on each GPU. ``terms`` sum to ``expected``: what is hidden is not in them."""

    terms: tuple[TimeTerm, ...]
    tokens: int
    """Tokens of one GPU in a step, padding included."""
    share: tuple[float, float]
    """The range around the expected time, as factors."""
    doubts: tuple[str, ...] = ()
    """Why confidence is low; empty where it is as usual."""

    @cached_property
    def expected(self) -> float:
        """Seconds."""
        return sum(term.seconds for term in self.terms)

    @property
    def low(self) -> float:
        """Seconds if all goes well."""
        return self.expected * self.share[0]

    @property
    def high(self) -> float:
        """Seconds if little does."""
        return self.expected * self.share[1]

    @property
    def confidence(self) -> Confidence:
        """``low`` where the published figures say little about such a run."""
        return "low" if self.doubts else "usual"

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """At the expected time."""
        return self.tokens / self.expected

    def by_kind(self) -> dict[Kind, float]:
        """Seconds by kind; they sum to ``expected``."""
        totals: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        for term in self.terms:
            totals[term.kind] += term.seconds
        return totals


@record
class Conditions:
    """What a published figure says of its run beyond the configs."""

    optimized_kernels: bool = False
    """Fused kernels of another framework."""
    fused_adapters: bool = False
    """LoRA's kernels of another framework."""
    attention: Literal["masked", "flash-1"] | None = None
    """sdpa with a mask of all rows, or FlashAttention before its second version."""
    narrow_states: bool = False
    """Optimizer states and weights in half precision alone, under whatever sharding."""
    document_len: int | None = None
    """Tokens of a document, where packed rows attend to their own document only."""
    balanced_rows: bool = False
    """Rows cut among GPUs so that each computes as much as the others, as axolotl does not cut them."""


@record
class Unpriced:
    """Why a run has no time, and what would settle it."""

    reason: str
    remedy: str = ""
