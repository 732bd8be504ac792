"""The edit to ask about next: a lint finding's, a step of the plan as it is now, then what is a matter of choice."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from itertools import chain

from advisor.documents import PatchError, as_path
from advisor.engine.check import planned
from advisor.engine.finding import Finding, Fix
from advisor.engine.fix import attempted
from advisor.engine.lint import finding_of, lint_hits
from advisor.engine.options import Options, tiers_of
from advisor.engine.plan import plan_fit
from advisor.engine.plan_findings import step_edits, step_finding
from advisor.engine.states import Plan, State
from advisor.engine.suppression import is_ignored
from advisor.memory import estimate
from advisor.opening import LoadedRun
from advisor.record import record, replace
from advisor.run import Run

Key = tuple[object, ...]


@record(eq=False)
class Proposal:
    """One edit: the run before and after it, and what is said of it. ``key`` is what it has in common with itself."""

    key: Key
    finding: Finding
    before: Run
    after: Run
    plan: Plan | None = None
    """The plan that it is the first step of."""
    own: bool = False
    """Whether the value is the user's, so that nobody knows what it does to the training."""

    @cached_property
    def fix(self) -> Fix:
        """What it changes."""
        assert self.finding.fix is not None, "a proposal is a finding with a fix"
        return self.finding.fix

    @property
    def one_of_many(self) -> bool:
        """Whether ``a`` may take it, as ``--fix`` does."""
        return self.fix.safe and not self.own and not self.fix.by_choice


@record(eq=False)
class Review:
    """One file under review: the run with what was accepted, and what was answered so far."""

    opened: LoadedRun
    run: Run
    options: Options
    done: tuple[Finding, ...] = ()
    steps: int = 0
    """Steps of the plan that were accepted."""
    off: frozenset[str] = frozenset()
    """Steps that are off the flowchart: refused, or taken with a value of the user's."""
    answered: frozenset[Key] = frozenset()
    taking: bool = field(default=False)
    """Whether safe edits are taken unasked from here on."""

    def accepted(self, proposal: Proposal) -> "Review":
        """With the edit made."""
        took = replace(self, run=proposal.after, done=(*self.done, proposal.finding))
        if proposal.plan is not None:
            took = replace(took, steps=self.steps + 1)
        return took.without(proposal) if proposal.own or proposal.plan is None else took.once(proposal)

    def without(self, proposal: Proposal) -> "Review":
        """With the edit not offered again: a step is off the flowchart."""
        off = self.off | {proposal.finding.rule} if proposal.plan is not None else self.off
        return replace(self.once(proposal), off=off)

    def once(self, proposal: Proposal) -> "Review":
        """With this very edit not offered a second time."""
        return replace(self, answered=self.answered | {proposal.key})


def proposal_for(review: Review) -> Proposal | None:
    """What to ask next; None where nothing is left."""
    found = _lint_proposals(review, by_choice=False), _step_proposals(review), _lint_proposals(review, by_choice=True)
    return next(chain(*found), None)


def _lint_proposals(review: Review, *, by_choice: bool) -> Iterator[Proposal]:
    """The edits of lint findings that no comment keeps quiet."""
    run = review.run
    for rule, hit in lint_hits(run, review.options):
        paths = tuple(
            sorted(".".join(map(str, as_path(change.path))) for _, changes in hit.changes for change in changes)
        )
        key = (rule.id, hit.document, paths)
        unwanted = not hit.changes or rule.offer is not by_choice or key in review.answered
        if unwanted or is_ignored(run, found := finding_of(run, rule, hit)):
            continue
        after = attempted(replace(review.opened, run=run), hit, memory=True)
        if after is None:
            continue
        with suppress(PatchError):
            fix = replace(fix_of(run, after, rule.is_safe(run)), by_choice=by_choice)
            yield Proposal(key, replace(found, fix=fix), run, after)


def fix_of(before: Run, after: Run, safe: bool) -> Fix:
    """What an edit outside of the plan changes, and what it does to the peak if it does."""
    edits, diff = step_edits(before, after, shown=True)
    old, new = estimate(before), estimate(after)
    if old is None or new is None or old.needed.low == new.needed.low:
        return Fix(safe, edits, diff=diff)
    return Fix(safe, edits, old.needed.low, new.needed.low, new.verdict, diff, condition=new.condition)


def _step_proposals(review: Review) -> Iterator[Proposal]:
    """The first step of the plan for the run as it is now, less what was refused."""
    off = set(review.off)
    while (plan := _plan_of(review, off)) is not None and plan.steps:
        step = plan.steps[0]
        key = (step.rule.id, str(sorted(step.edits.items())))
        finding = step_finding(step, review.steps + 1)
        if finding is not None and key not in review.answered:
            yield Proposal(key, finding, step.before.run, step.after.run, plan)
        off.add(step.rule.id)


def _plan_of(review: Review, off: set[str]) -> Plan | None:
    """The plan, as ``check`` has it; once steps have made the run tight, also one that only makes it less so."""
    found, options = estimate(review.run), review.options.without(tuple(off))
    if found is not None and not found.uncounted and found.verdict == "tight" and review.steps:
        return plan_fit(State(review.run), tiers_of(options))
    return planned(review.run, found, options)
