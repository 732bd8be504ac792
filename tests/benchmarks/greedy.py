"""The walk of version 0.1, kept to be compared with: each step of the flowchart in turn, until the run fits."""

from collections.abc import Sequence

from advisor.engine.bases import Tier
from advisor.engine.skipped import Skipped
from advisor.engine.states import State, Step
from advisor.engine.steps import best_step

SINCE = {"zero-1", "half-masters", "fsdp-2", "less-offload", "lower-zero-stage", "larger-micro-batch", "hsdp", "hpz"}
"""Steps that its flowchart did not have."""


def greedy(start: State, flowchart: Sequence[Tier]) -> State:
    """Where its safe steps end, each kept if it lowered the peak, none taken back but the last needless ones."""
    steps: list[Step] = []
    state = start
    for rule in (rule for tier in flowchart for rule in tier.rules if rule.id not in SINCE):
        if state.verdict == "fits":
            break
        if rule.when(state.run) and rule.is_safe(state.run):
            found = best_step(rule, state)
            if not isinstance(found, Skipped):
                steps.append(found)
                state = found.after
    return shortened(start, steps) if state.verdict == "fits" else state


def shortened(start: State, steps: list[Step]) -> State:
    """Without the steps that the end does not need, the last first."""
    for index in reversed(range(len(steps))):
        rest = replayed(start, steps[:index] + steps[index + 1 :])
        if rest and rest[-1].after.verdict == "fits":
            return shortened(start, rest)
    return steps[-1].after if steps else start


def replayed(start: State, steps: list[Step]) -> list[Step] | None:
    """The same rules from another start."""
    state, made = start, list[Step]()
    for step in steps:
        found = best_step(step.rule, state) if step.rule.when(state.run) else None
        if not isinstance(found, Step):
            return None
        made.append(found)
        state = found.after
    return made
