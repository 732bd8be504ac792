"""The plans of a call, each made once: the screen shows one, ``--fix`` writes it, and they are the same."""

from collections.abc import Sequence
from dataclasses import field

from advisor.engine.plan import Tier, plan_fit
from advisor.engine.states import Plan, State
from advisor.record import record
from advisor.run import Run

MOST_PLANS = 8
Key = tuple[Run, tuple[tuple[str, ...], ...], bool]
"""A run as it is, the rules of each tier, and whether safe steps alone are wanted."""


@record(eq=False)
class PlanMemo:
    """The last few plans that were made."""

    made: dict[Key, Plan] = field(default_factory=dict[Key, Plan])

    def written(self, run: Run, flowchart: Sequence[Tier], *, safe_only: bool) -> Plan:
        """The plan that ``--fix`` writes, with ``--unsafe-fixes`` or with safe steps alone.

        Where the plan with all steps trains the same and ends well, both are this one.
        """
        if safe_only and State(run).verdict == "does-not-fit":
            whole = self.plan(run, flowchart, safe_only=False)
            if whole.safe and whole.verdict in {"fits", "tight"}:
                return whole
        return self.plan(run, flowchart, safe_only=safe_only)

    def plan(self, run: Run, flowchart: Sequence[Tier], *, safe_only: bool) -> Plan:
        """A plan, made if it is not there."""
        key = (run, tuple(tuple(rule.id for rule in tier.rules) for tier in flowchart), safe_only)
        if key not in self.made:
            made = plan_fit(State(run), flowchart, safe_only=safe_only)
            while len(self.made) >= MOST_PLANS:
                self.made.pop(next(iter(self.made)))
            self.made[key] = made
        return self.made[key]
