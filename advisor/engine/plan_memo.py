"""What a call has worked out, each thing once: the screen shows a plan, ``--fix`` writes it, and they are the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from advisor.engine.bases import Tier
from advisor.engine.points import Moves, Paths
from advisor.engine.rule import Hit, Rule
from advisor.engine.speedups import sequence
from advisor.engine.states import Plan, State, Step
from advisor.record import record
from advisor.run import Run

K = TypeVar("K")
V = TypeVar("V")
MOST_PLANS = 8
MOST_EDITS = 64
MOST_WALKED = 2
"""So many runs keep what plans have worked out, some megabytes each."""
Key = tuple[Run, tuple[tuple[str, ...], ...], bool, bool]
"""A run as it is, the rules of each tier, whether safe steps alone are wanted, and whether the fastest end is."""
SpeedKey = tuple[Run, tuple[str, ...]]
"""A run as it is, and the rules that a way back may be made of."""
Walked = tuple[State, dict[Moves, Paths]]
"""Where plans of a run start, and what they have worked out."""
Hits = tuple[tuple[Rule, Hit], ...]
HitsKey = tuple[Run, tuple[str, ...], tuple[str, ...], int]
"""A run as it is, the rules that are selected and ignored, and which mapping of rules is added."""
EditKey = tuple[Run, int, bool]
"""A run as it is, the hit whose edits are made, and whether memory counts."""


@record(eq=False)
class PlanMemo:
    """The last few plans, ways to more speed, hits of the lint rules, and runs with the edits of one hit."""

    made: dict[Key, Plan] = field(default_factory=dict[Key, Plan])
    faster: dict[SpeedKey, tuple[Step, ...]] = field(default_factory=dict[SpeedKey, "tuple[Step, ...]"])
    hits: dict[HitsKey, Hits] = field(default_factory=dict[HitsKey, Hits])
    walked: dict[Run, Walked] = field(default_factory=dict[Run, Walked])
    edited: dict[EditKey, tuple[Hit, Run | None]] = field(default_factory=dict[EditKey, "tuple[Hit, Run | None]"])

    def written(self, run: Run, flowchart: Sequence[Tier], *, safe_only: bool, fastest: bool = False) -> Plan:
        """The plan that ``--fix`` writes, with ``--unsafe-fixes`` or with safe steps alone; ``fastest``: ``--faster``.

        Where the plan with all steps trains the same and ends well, both are this one.
        """
        if safe_only and State(run).verdict == "does-not-fit":
            whole = self.plan(run, flowchart, safe_only=False, fastest=fastest)
            if whole.safe and whole.ends_well:
                return whole
        return self.plan(run, flowchart, safe_only=safe_only, fastest=fastest)

    def plan(self, run: Run, flowchart: Sequence[Tier], *, safe_only: bool, fastest: bool = False) -> Plan:
        """A plan, made if it is not there."""
        key = (run, tuple(tuple(rule.id for rule in tier.rules) for tier in flowchart), safe_only, fastest)
        return _kept(self.made, key, lambda: self._planned(run, flowchart, safe_only=safe_only, fastest=fastest))

    def _planned(self, run: Run, flowchart: Sequence[Tier], *, safe_only: bool, fastest: bool) -> Plan:
        """A plan that is made, from what others of the same run have worked out."""
        from advisor.engine.plan import plan_fit

        start, walked = _kept(self.walked, run, lambda: (State(run), {}), MOST_WALKED)
        return plan_fit(start, flowchart, safe_only=safe_only, fastest=fastest, walked=walked)

    def speedup(self, run: Run, rules: Mapping[str, Rule]) -> tuple[Step, ...]:
        """The sequence with which a run that fits is fastest, made if it is not there."""
        return _kept(self.faster, (run, tuple(rules)), lambda: sequence(State(run), rules))

    def found(self, key: HitsKey, find: Callable[[], Hits]) -> Hits:
        """What the lint rules find, looked for if it is not there."""
        return _kept(self.hits, key, find)

    def after(self, run: Run, hit: Hit, edit: Callable[[], Run | None], *, memory: bool) -> Run | None:
        """The run with the edits of a hit, made if it is not there; the hit is kept, and so its ``id`` is its own."""
        return _kept(self.edited, (run, id(hit), memory), lambda: (hit, edit()), MOST_EDITS)[1]


def _kept(memo: dict[K, V], key: K, make: Callable[[], V], most: int = MOST_PLANS) -> V:
    """What the memo has under a key, or what is made and put there in place of the oldest."""
    if key not in memo:
        made = make()
        while len(memo) >= most:
            memo.pop(next(iter(memo)))
        memo[key] = made
    return memo[key]
