"""Measured runs compared with their estimates."""

from collections.abc import Iterable
from functools import cached_property

from advisor.accuracy.published import Measured, published
from advisor.errors import InputError
from advisor.memory import Estimate, Verdict, estimate
from advisor.memory.ledger import Range
from advisor.opening import open_configs
from advisor.record import record
from advisor.run import Run
from advisor.util import GIB


@record(eq=False)
class Judged:
    """A measured run and its estimate. Sizes in bytes."""

    case: Measured
    run: Run
    estimate: Estimate

    @cached_property
    def estimated(self) -> int:
        """The estimated peak of the phases that ran."""
        ran = self.case.phases
        return max(phase.bytes for phase in self.estimate.phases if ran is None or phase.name in ran)

    @cached_property
    def allocated(self) -> float:
        """The measured peak, or the estimated one where nobody measured it."""
        return self.estimated if self.case.allocated_gib is None else self.case.allocated_gib * GIB

    @cached_property
    def error(self) -> float:
        """Relative error of the allocated peak; of a run that counts alone."""
        return self.estimated / self.allocated - 1

    @cached_property
    def reserved(self) -> float | None:
        """What torch had reserved, from torch or from nvidia-smi less what lies outside torch; None if it failed."""
        if self.case.out_of_memory:
            return None
        if self.case.reserved_gib is not None:
            return self.case.reserved_gib * GIB
        return None if self.case.smi_gib is None else self.case.smi_gib * GIB - self.estimate.outside_torch

    @property
    def held(self) -> bool:
        """Whether the estimate's range holds what was reserved."""
        return self.reserved is not None and holds(self.estimate.reserved_peak, self.reserved)

    @cached_property
    def usable(self) -> float:
        """What torch could have."""
        return self.estimate.usable if self.case.limit_gib is None else self.case.limit_gib * GIB

    @property
    def verdict(self) -> Verdict:
        """The verdict, under the limit that the run had."""
        return verdict(self.estimate.needed, self.usable)


def verdict(needed: Range, usable: float) -> Verdict:
    """Whether ``needed`` goes into ``usable``."""
    if needed.high <= usable:
        return "fits"
    return "tight" if needed.low <= usable else "does-not-fit"


def holds(within: Range, size: float) -> bool:
    """Whether the range holds ``size``."""
    return within.low <= size <= within.high


def width(within: Range) -> float:
    """The width of a range as a share of its low end."""
    return within.high / within.low - 1


def judged(cases: Iterable[Measured] | None = None) -> list[Judged]:
    """Every run with its estimate: the published ones, unless others are given."""
    return [judge(case) for case in (published() if cases is None else cases)]


def judge(case: Measured) -> Judged:
    """A run with its estimate."""
    try:
        run = open_configs(case.config, case.deepspeed, case.gpus, case.stack, model=case.model).run
    except InputError as error:
        raise InputError(f"{case.id}: {error.message}", case.file, case.line, remedy=error.remedy) from None
    found = estimate(run)
    if found is None:
        unreadable = run.unreadable[0].message if run.unreadable else ""
        reason = unreadable or f"the catalogue has no {run.base_model}"
        raise InputError(f"{case.id}: {reason}", case.file, case.line, remedy="leave this run out")
    return Judged(case, run, found)
