"""What is alive when, over a tape: by part and by phase, with what torch has reserved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, get_args

from advisor.allocations.allocator.allocator import Allocator
from advisor.allocations.allocator.settings import settings_of
from advisor.allocations.step.assembly import recorded
from advisor.record import record

if TYPE_CHECKING:
    from advisor.allocations.allocator.blocks import Block
    from advisor.allocations.step.assembly import Recorded
    from advisor.run import Run

Alive = Literal["weights", "optimizer states", "gradients", "activations", "loss", "temporaries", "workspaces"]
ALIVE: tuple[Alive, ...] = get_args(Alive)
"""From the longest-lived to the shortest."""


@record(eq=False)
class Moment:
    """After some event: bytes by part, in the order of ``ALIVE``, and what torch has reserved."""

    parts: tuple[int, ...]
    reserved: int

    @property
    def allocated(self) -> int:
        """All parts together."""
        return sum(self.parts)

    def of(self, part: Alive) -> int:
        """Bytes of one part."""
        return self.parts[ALIVE.index(part)]


@record(eq=False)
class Span:
    """A phase, and its moments in a row: of equal stretches the moment at which most is allocated."""

    name: str
    moments: tuple[Moment, ...]

    @property
    def peak(self) -> Moment:
        """When most is allocated."""
        return max(self.moments, key=lambda moment: moment.allocated)


@record(eq=False)
class Timeline:
    """The phases of a run, from the load to the second step."""

    spans: tuple[Span, ...]

    @property
    def peak(self) -> tuple[Span, Moment]:
        """The phase with the peak, and that moment."""
        span = max(self.spans, key=lambda span: span.peak.allocated)
        return span, span.peak

    @property
    def reserved(self) -> int:
        """The most that torch reserves."""
        return max(moment.reserved for span in self.spans for moment in span.moments)

    def without(self, part: Alive) -> int:
        """The most that the other parts take at any moment."""
        return max(moment.allocated - moment.of(part) for span in self.spans for moment in span.moments)


COLUMNS = 600
"""How many moments are kept of a run; no phase has fewer than ``LEAST``."""
LEAST = 24
FEW, FEWEST = 120, 8
"""The same of a small picture."""


def envelope(run: Run) -> Timeline | None:
    """Each phase once, where it is highest, in few moments; None where no tape has the run after all."""
    from advisor.allocations.coverage import covered

    if run.hardware is None or not covered(run):
        return None
    try:
        found = timeline(run, FEW, FEWEST)
    except Exception:  # whatever is raised inside a replay means that it does not cover the run
        return None
    highest: dict[str, Span] = {}
    for span in found.spans:
        known = highest.setdefault(span.name, span)
        if span.peak.allocated > known.peak.allocated:
            highest[span.name] = span
    return Timeline(tuple(highest.values()))


def timeline(run: Run, columns: int = COLUMNS, least: int = LEAST) -> Timeline:
    """The timeline of a run that ``coverage.covered`` knows, with the weights loaded in the order of the modules."""
    tape = recorded(run)
    kinds = kinds_of(tape)
    marks = [(name, end) for name, end in tape.marks if name != "base"]
    total, start = len(tape.events), 0
    spans: list[Span] = []
    moments = _after_each(tape, kinds, run)
    for name, end in marks:
        count = max(least, columns * (end - start) // total)
        spans.append(Span(name, tuple(_condensed(moments, end - start, count))))
        start = end
    return Timeline(tuple(spans))


def kinds_of(tape: Recorded) -> list[int]:
    """The part of each allocation, by its number: who made it, and whether it outlives the phase."""
    died: dict[int, int] = {number: index for index, (number, size) in enumerate(tape.events) if not size}
    ends = [end for _, end in tape.marks if _ != "base"]
    kinds = [ALIVE.index("temporaries")] * len(tape.parts)
    phase = 0
    for index, (number, size) in enumerate(tape.events):
        while phase < len(ends) - 1 and index >= ends[phase]:
            phase += 1
        if size:
            outlives = died.get(number, len(tape.events)) >= ends[phase]
            kinds[number] = ALIVE.index(kind_of(tape.parts[number], outlives=outlives))
    return kinds


def kind_of(part: str, *, outlives: bool) -> Alive:
    """The part of an allocation that was made in a part of the run."""
    match part:
        case "workspace":
            return "workspaces"
        case "loss":
            return "loss"
        case _ if not outlives:
            return "temporaries"
        case "load":
            return "weights"
        case "optimizer":
            return "optimizer states"
        case "backward" | "buckets":
            return "gradients"
        case _:
            return "activations"


def _after_each(tape: Recorded, kinds: list[int], run: Run) -> Iterator[Moment]:
    """The moment after each event."""
    allocator = Allocator(settings_of(run))
    live: dict[int, Block] = {}
    parts = [0] * len(ALIVE)
    for number, size in tape.events:
        if size:
            block = live[number] = allocator.malloc(size)
            parts[kinds[number]] += block.size
        elif not number:
            allocator.release()
        else:
            block = live.pop(number)
            parts[kinds[number]] -= block.size
            allocator.free(block)
        yield Moment(tuple(parts), allocator.reserved)


def _condensed(moments: Iterator[Moment], events: int, count: int) -> Iterator[Moment]:
    """Of ``count`` equal stretches of the next events, the moment at which most is allocated."""
    taken = 0
    for column in range(min(count, events)):
        until = events * (column + 1) // min(count, events)
        best: Moment | None = None
        while taken < until:
            one = next(moments)
            taken += 1
            best = one if best is None or one.allocated > best.allocated else best
        if best is not None:
            yield best
