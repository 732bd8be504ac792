"""What is worked out in a pause, or when somebody asks: the report with its answer, and each step on its own."""

from functools import cached_property

from advisor.documents import Edit, PatchError
from advisor.engine.answer import Answer, Option
from advisor.engine.answering import answered
from advisor.engine.cancellation import end_if_cancelled
from advisor.engine.check import check_run
from advisor.engine.finding import Report
from advisor.engine.hardware_that_fits import on_any_gpu
from advisor.engine.options import Options
from advisor.engine.plan_findings import step_edits
from advisor.engine.regression import new_errors
from advisor.engine.states import State, Step, trains_the_same
from advisor.engine.steps import run_after
from advisor.memory import Estimate, estimate
from advisor.opening import LoadedRun
from advisor.record import record, replace

from .checking import Checked


@record(eq=False)
class Alone:
    """One step of an option made to the file as it is, without the others."""

    number: int
    title: str
    safe: bool
    edits: tuple[Edit, ...]
    end: Estimate


@record(eq=False)
class Planned:
    """A run with its answer."""

    opened: LoadedRun
    report: Report

    @property
    def answer(self) -> Answer | None:
        """Of a JSON alone there is none."""
        return self.report.answer

    @cached_property
    def alone(self) -> tuple[Alone, ...]:
        """Each step of the option to take, where it has several and one helps without the others."""
        option = self.answer.recommended if self.answer is not None else None
        if option is None or option.changes < 2:
            return ()
        found = (self._alone(number, step, option) for number, step in enumerate(option.taken, 1))
        return tuple(each for each in found if each is not None)

    def _alone(self, number: int, step: Step, option: Option) -> Alone | None:
        """One of them; None where it changes nothing on its own, stops the run, or needs more memory."""
        end_if_cancelled()
        run = self.opened.run
        after = run_after(run, step.edits, step.rule)
        if after is None or new_errors(run, after, memory=False):
            return None
        try:
            edits, _ = step_edits(run, after, shown=False)
        except PatchError:
            return None
        end, now = State(after).estimate, self.report.estimate
        if not edits or (now is not None and option.letter != "F" and end.needed.high >= now.needed.high):
            return None
        return Alone(number, step.rule.named(run, after), trains_the_same(step.rule, run, after), edits, end)


def needs_of(checked: Checked) -> int | None:
    """Bytes on one GPU where no GPUs are stated: the high end; None where they are, or the model is not known."""
    run = checked.found.run
    found = estimate(on_any_gpu(run)) if run.hardware is None and run.model is not None else None
    return found.needed.high if found is not None else None


def planned(checked: Checked) -> Planned:
    """The report with its plan, its offers and its answer."""
    opened = checked.found.opened
    options: Options = replace(checked.found.options, plans=True, speed=True, answers=True, steps=True)
    return Planned(opened, answered(opened, options, check_run(opened, options)))
