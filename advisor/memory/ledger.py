"""The shape of an estimate: phases of terms, and the ranges that the verdict rests on."""

from functools import cached_property
from typing import Literal

from advisor.memory.uncounted import Uncounted
from advisor.record import record
from advisor.run import Images
from advisor.util import GIB, number

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
    """The tokens of a row that are counted, and what says so. ``full``: every row has them, packed or padded.

    ``uncut``: a longer one goes through whole.
    """

    length: int
    origin: str
    full: bool
    uncut: bool = False

    @property
    def prepared(self) -> bool:
        """Whether axolotl has already prepared the rows."""
        return self.origin != "sequence_len"


@record
class HostTerm:
    """One addend of a node's host memory; pinned bytes cannot be paged out.

    ``paged``: CUDA's managed memory, which moves to the host only under pressure. ``unrounded`` is what is asked for,
    where ``bytes`` is that as pinned blocks are rounded; None where nothing is.
    """

    name: str
    bytes: int
    pinned: bool
    formula: str
    source: str
    paged: bool = False
    unrounded: int | None = None

    @property
    def least(self) -> int:
        """The bytes that are on the host for certain."""
        return 0 if self.paged else self.bytes if self.unrounded is None else self.unrounded


LITTLE_ROOM = 0.95
"""Of what is usable: a run that needs more fits with little room."""
FULL, OVER = 0.9, 1.1
"""Of the card, from which free room is worth a sentence; of the host, beyond which nobody should count on it."""


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
    host_needed: Range = Range(0, 0)
    """Of one node: low without what pinned blocks are rounded up by and without paged states that the GPU can hold."""
    host_usable: int | None = None
    """What a node has, stated or detected, with swap for what is pageable; None where nobody said."""

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
    def needed_in_training(self) -> int:
        """Bytes with which the run would go through without evaluation: the high end."""
        others = max((phase.bytes for phase in self.phases if phase.name != "evaluation"), default=0)
        return round(others * self.needed.high / max(1, self.allocated_peak))

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
    def filled(self) -> str:
        """``65.6 of 78.0 GiB``: the high end of what one GPU needs, of what it has."""
        return f"{number(self.needed.high)} of {number(self.usable)} GiB"

    @property
    def condition(self) -> str:
        """What the verdict takes of each host, in whole GiB rounded up: ``, with 168 GiB of host memory a node``.

        Where the host decides, what it has stands there too. Empty where the GPU does not suffice anyway, nothing is
        offloaded, or only a paged optimizer's few states are.
        """
        low, high = (-(-size // GIB) for size in (self.host_needed.low, self.host_peak))
        offloaded = any(not term.paged for term in self.host) or self.host_peak >= GIB
        if self.on_gpu not in {"fits", "tight"} or not offloaded:
            return ""
        if self.host_usable is None or self.on_host == "fits":
            return f", with {high} GiB of host memory a node"
        needed = f"{low} to {high}" if low < high else f"{high}"
        return f", with {needed} of {self.host_usable / GIB:.0f} GiB of host memory a node"

    @property
    def grounds(self) -> str:
        """``condition``, and the length that rows are counted at where they may be shorter."""
        if self.rows.full or self.verdict == "unknown":
            return self.condition
        which = ", the longest prepared" if self.rows.prepared else " (longer ones are not cut)" * self.rows.uncut
        return f"{self.condition}, for rows of up to {self.rows.length} tokens{which}"

    @property
    def verdict(self) -> Verdict:
        """The worse of what the GPU and what the host says."""
        gpu, host = self.on_gpu, self.on_host
        return gpu if WORSE.index(gpu) >= WORSE.index(host) else host

    @property
    def has_little_room(self) -> bool:
        """Whether it fits, and leaves less than a twentieth of the card."""
        return self.verdict == "fits" and self.needed.high > LITTLE_ROOM * self.usable

    @property
    def is_full(self) -> bool:
        """Whether it fits, and leaves less than a tenth of the card: room that costs nothing is worth a sentence."""
        return self.verdict == "fits" and self.needed.high > FULL * self.usable

    @property
    def is_far_from_sure(self) -> bool:
        """Whether the host has enough by the low end alone, and lacks more than a tenth by the high one."""
        return self.host_usable is not None and self.host_peak > OVER * self.host_usable

    @property
    def lacks_host(self) -> bool:
        """Whether it is the host alone that does not suffice."""
        return self.on_host == "does-not-fit" != self.on_gpu

    @property
    def on_gpu(self) -> Verdict:
        """Whether ``needed`` goes into ``usable``; ``unknown`` where something uncounted could turn the answer."""
        turned = {each.memory for each in self.uncounted}
        if self.needed.low > self.usable:
            return "unknown" if turned & {"less", "either"} else "does-not-fit"
        if turned & {"more", "either"}:
            return "unknown"
        return within(self.needed, self.usable)

    @property
    def on_host(self) -> Verdict:
        """Whether a node's memory suffices; what nobody said does."""
        return "fits" if self.host_usable is None else within(self.host_needed, self.host_usable)


WORSE: tuple[Verdict, ...] = ("fits", "tight", "unknown", "does-not-fit")


def within(needed: Range, usable: int) -> Verdict:
    """Whether a range goes into what is usable."""
    return "does-not-fit" if needed.low > usable else "fits" if needed.high <= usable else "tight"
