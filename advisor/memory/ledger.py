"""The shape of an estimate: phases of terms, and the ranges that the verdict rests on."""

from functools import cached_property
from typing import Literal

from advisor.memory.uncounted import Uncounted
from advisor.record import record
from advisor.run import Images
from advisor.util import GIB

Part = Literal["weights", "gradients", "optimizer", "activations", "loss", "overhead"]
PARTS: tuple[Part, ...] = ("weights", "gradients", "optimizer", "activations", "loss", "overhead")
Verdict = Literal["fits", "tight", "does-not-fit", "unknown"]
PhaseName = Literal["load", "forward and loss", "backward", "optimizer step", "evaluation", "generation"]


@record
class Term:
    """One addend of a phase: its bytes, the arithmetic as text, and where the formula comes from."""

    name: str
    part: Part
    bytes: int
    formula: str
    source: str


@record
class Phase:
    """What is allocated at the worst moment of one phase of training, on the GPU that needs most."""

    name: PhaseName
    terms: tuple[Term, ...]

    @cached_property
    def bytes(self) -> int:
        """The sum of the terms."""
        return sum(term.bytes for term in self.terms)

    def parts(self) -> dict[Part, int]:
        """Bytes by part; they sum to ``bytes`` exactly."""
        totals: dict[Part, int] = dict.fromkeys(PARTS, 0)
        for term in self.terms:
            totals[term.part] += term.bytes
        return totals


@record
class Range:
    """Bytes, from ``low`` to ``high``."""

    low: int
    high: int


@record
class Rows:
    """The tokens of a row that are counted, and what says so. ``full``: every row has them, packed or padded."""

    length: int
    origin: str
    full: bool

    @property
    def prepared(self) -> bool:
        """Whether axolotl has already prepared the rows."""
        return self.origin != "sequence_len"


@record
class HostTerm:
    """One addend of a node's host memory; pinned bytes cannot be paged out.

    ``paged``: CUDA's managed memory, which moves to the host only under pressure.
    """

    name: str
    bytes: int
    pinned: bool
    formula: str
    source: str
    paged: bool = False


@record
class Estimate:
    """Bytes on the GPU that needs most, and on each node's host. Pure arithmetic on a ``Run``.

    ``allocated_peak`` is torch's allocated bytes at the worst phase. ``needed`` is the memory with which the run goes
    through, and what the verdict rests on; ``reserved_peak`` is what torch will have reserved on a roomy card.
    ``usable`` is what torch reports for the card less ``outside_torch`` (CUDA context, NCCL).
    """

    phases: tuple[Phase, ...]
    host: tuple[HostTerm, ...]
    needed: Range
    reserved_peak: Range
    usable: int
    outside_torch: int
    notes: tuple[str, ...] = ()
    rows: Rows = Rows(0, "", full=True)
    images: Images | None = None
    """The images that a tower is counted with; None where none is."""
    uncounted: tuple[Uncounted, ...] = ()
    """What the run turns on that takes memory, or frees it, and is not counted."""
    ranges: Literal["published", "replay"] = "published"
    """What ``reserved_peak`` rests on."""

    @cached_property
    def peak(self) -> Phase:
        """The phase that needs most."""
        return max(self.phases, key=lambda phase: phase.bytes)

    @property
    def peak_phase(self) -> PhaseName:
        """The name of the phase that needs most."""
        return self.peak.name

    @property
    def allocated_peak(self) -> int:
        """Bytes allocated at the peak."""
        return self.peak.bytes

    @property
    def parts(self) -> dict[Part, int]:
        """The peak by part; sums to ``allocated_peak``."""
        return self.peak.parts()

    @cached_property
    def host_peak(self) -> int:
        """Host bytes of one node: pinned and pageable."""
        return sum(term.bytes for term in self.host)

    @property
    def host_pinned(self) -> int:
        """The pinned part of ``host_peak``."""
        return sum(term.bytes for term in self.host if term.pinned)

    @property
    def condition(self) -> str:
        """What the verdict takes of each host, in whole GiB rounded up: ``, with 168 GiB of host memory a node``.

        Empty where the run does not fit anyway, nothing is offloaded, or only a paged optimizer's few states are.
        """
        offloaded = any(not term.paged for term in self.host) or self.host_peak >= GIB
        if not offloaded or self.verdict not in {"fits", "tight"}:
            return ""
        return f", with {-(-self.host_peak // GIB)} GiB of host memory a node"

    @property
    def grounds(self) -> str:
        """``condition``, and the length that rows are counted at where they may be shorter."""
        if self.rows.full or self.verdict == "unknown":
            return self.condition
        which = ", the longest prepared" if self.rows.prepared else ""
        return f"{self.condition}, for rows of up to {self.rows.length} tokens{which}"

    @property
    def verdict(self) -> Verdict:
        """Whether ``needed`` goes into ``usable``; ``unknown`` where something uncounted could turn the answer."""
        turned = {each.memory for each in self.uncounted}
        if self.needed.low > self.usable:
            return "unknown" if turned & {"less", "either"} else "does-not-fit"
        if turned & {"more", "either"}:
            return "unknown"
        return "fits" if self.needed.high <= self.usable else "tight"
