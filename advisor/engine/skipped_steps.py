"""Why a plan does without some of the flowchart's steps."""

from collections.abc import Iterator, Sequence

from advisor.engine.bases import Tier
from advisor.engine.skipped import Skipped
from advisor.engine.states import Plan, State
from advisor.engine.steps import best_step


def skipped_steps(start: State, plan: Plan, flowchart: Sequence[Tier], *, safe_only: bool) -> Iterator[Skipped]:
    """The steps that were no help, and why; where the plan fits, only those that lack a host."""
    hopeless = plan.verdict == "does-not-fit"
    if plan.safe and not hopeless:
        return
    at = plan.end if hopeless else start
    rules = {rule.id: rule for tier in flowchart for rule in tier.rules if rule.id not in plan.names}
    for rule in rules.values():
        if not rule.when(at.run) or (not rule.is_safe(at.run) and (safe_only or not hopeless)):
            continue
        found = best_step(rule, at)
        if isinstance(found, Skipped) and (hopeless or "host memory" in found.reason):
            yield found
