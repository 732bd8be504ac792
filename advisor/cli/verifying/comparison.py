"""Foreseen against seen: phase by phase, within the range or not, and which term is likely to be wrong."""

from collections.abc import Iterator, Sequence

from advisor.cli.verifying.seen import STEP, Seen
from advisor.memory import Estimate
from advisor.memory.ledger import Phase, Range, Term
from advisor.memory.ranges import ROUNDING
from advisor.record import record, replace

ONLY_CUDA = "cuBLAS workspaces"
"""A term of kernels that no CPU has."""
PASSES = ("generation", "forward and loss", "backward")
"""What takes turns within ``accelerator.backward`` and before it: a loss has its gradient once backward has begun."""
SET_UP = "set-up"


@record
class Row:
    """A part of the training that can be told apart from outside. Bytes; None where nothing is known of it."""

    name: str
    foreseen: int | None
    allocated: int | None
    reserved: int | None

    @property
    def gap(self) -> int:
        """Seen beyond what was foreseen."""
        return (self.allocated or 0) - (self.foreseen or 0)

    @property
    def is_compared(self) -> bool:
        """Whether both are known."""
        return self.foreseen is not None and self.allocated is not None


@record
class Comparison:
    """``allocated`` and ``reserved`` are the ranges in which what was seen is as foreseen."""

    rows: tuple[Row, ...]
    foreseen: int
    allocated: Range
    reserved: Range | None
    seen: Seen
    likely: Term | None = None
    """Where it is outside: the term that the difference is likely to come from."""

    @property
    def holds_allocated(self) -> bool:
        """Whether the allocated peak lies within its range."""
        return self.allocated.low <= self.seen.allocated <= self.allocated.high

    @property
    def holds_reserved(self) -> bool:
        """Whether what was reserved does, too; on a CPU nothing is."""
        return self.reserved is None or self.reserved.low <= self.seen.reserved <= self.reserved.high

    @property
    def as_foreseen(self) -> bool:
        """Whether the run was as the estimate says."""
        return self.holds_allocated and self.holds_reserved


def compared(found: Estimate, seen: Seen, *, cpu: bool) -> Comparison:
    """The estimate next to what was seen. Of a CPU the CUDA terms are left out, and so is all rounding."""
    phases = tuple(_without_cuda(phase) for phase in found.phases) if cpu else found.phases
    groups = tuple(_groups(seen))
    rows = tuple(_row(name, names, phases, seen) for name, names in groups)
    foreseen = max(row.foreseen or 0 for row in rows if row.is_compared)
    share = (found.needed.high - ROUNDING) / max(1, found.allocated_peak) - 1
    slack = round(share * foreseen) + (0 if cpu else ROUNDING)
    low = min(found.reserved_peak.low, found.allocated_peak) - slack
    result = Comparison(
        rows=tuple(row for row in rows if row.foreseen is not None or row.allocated is not None),
        foreseen=foreseen,
        allocated=Range(foreseen - slack, foreseen + slack),
        reserved=None if cpu else Range(low, found.reserved_peak.high),
        seen=seen,
    )
    return result if result.holds_allocated else replace(result, likely=likely_term(result, groups, phases))


def _groups(seen: Seen) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rows of the table, each with the phases that it stands for."""
    yield "load", ("load",)
    yield SET_UP, (SET_UP,)
    if seen.phase(STEP) is not None:
        yield "forward, backward, step", (*PASSES, "optimizer step", STEP)
    else:
        yield "forward and backward", PASSES
        yield "optimizer step", ("optimizer step",)
    yield "evaluation", ("evaluation",)


def _row(name: str, names: Sequence[str], phases: Sequence[Phase], seen: Seen) -> Row:
    """The highest of the phases of a row, foreseen and seen."""
    foreseen = [phase.bytes for phase in phases if phase.name in names]
    found = [phase for phase in seen.phases if phase.name in names]
    return Row(
        name,
        max(foreseen, default=None),
        max((phase.allocated for phase in found), default=None),
        max((phase.reserved for phase in found), default=None),
    )


def _without_cuda(phase: Phase) -> Phase:
    """The phase as a CPU has it."""
    return Phase(phase.name, tuple(term for term in phase.terms if term.name != ONLY_CUDA))


def likely_term(
    found: Comparison, groups: Sequence[tuple[str, tuple[str, ...]]], phases: Sequence[Phase]
) -> Term | None:
    """The term that comes in where most of the difference does.

    What holds in every phase shows first where least else is: while loading, then in the optimizer step. Of too much
    foreseen it is the term nearest in size, of too little the largest.
    """
    worst = max((row.gap for row in found.rows if row.is_compared), key=abs, default=0)
    names = dict(groups)
    before: set[str] = set()
    for row in sorted((row for row in found.rows if row.is_compared), key=lambda row: row.foreseen or 0):
        terms = [term for phase in phases if phase.name in names[row.name] for term in phase.terms]
        fresh = [term for term in terms if term.name not in before]
        if fresh and row.gap * worst > 0 and abs(row.gap) >= abs(worst) / 2:
            return min(fresh, key=lambda term: abs(term.bytes + worst)) if worst < 0 else max(fresh, key=_bytes)
        before |= {term.name for term in terms}
    return None


def _bytes(term: Term) -> int:
    return term.bytes
