"""What could be given back where there is room."""

from collections.abc import Iterable

from advisor.engine.regression import new_errors
from advisor.engine.rule import Rule
from advisor.engine.states import State, Step
from advisor.engine.steps import alternatives, host_suffices, run_after


def plan_speed(start: State, rules: Iterable[Rule]) -> list[Step]:
    """What could be given back, each on its own, kept only if the run still fits."""
    offers: list[Step] = []
    for rule in rules:
        if not rule.when(start.run):
            continue
        for edits in reversed(alternatives(rule, start.run)):
            run = run_after(start.run, edits, rule)
            if run is None or (after := State(run)).verdict != "fits" or not host_suffices(start, after):
                continue
            if not new_errors(start.run, after.run):
                offers.append(Step(rule, edits, start, after))
                break
    return offers
