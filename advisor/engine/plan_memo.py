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

    def plan(self, run: Run, flowchart: Sequence[Tier], *, safe_only: bool) -> Plan:
        """The plan for a run.

        Where the plan with all steps trains the same and ends well, it is the plan with safe steps alone, too.
        """
        start = State(run)
        if safe_only and start.verdict == "does-not-fit":
            whole = self._made(start, flowchart, safe_only=False)
            if whole.safe and whole.verdict in {"fits", "tight"}:
                return whole
        return self._made(start, flowchart, safe_only=safe_only)

    def _made(self, start: State, flowchart: Sequence[Tier], *, safe_only: bool) -> Plan:
        """The plan, made if it is not there."""
        key = (start.run, tuple(tuple(rule.id for rule in tier.rules) for tier in flowchart), safe_only)
        if key not in self.made:
            made = plan_fit(start, flowchart, safe_only=safe_only)
            while len(self.made) >= MOST_PLANS:
                self.made.pop(next(iter(self.made)))
            self.made[key] = made
        return self.made[key]
