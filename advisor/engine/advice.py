"""Advice that goes with the verdict: does batch size one fit, how far the plan gets, which hardware would do."""

from collections.abc import Callable

from advisor.engine.finding import OF_HOST, Finding
from advisor.engine.states import Plan
from advisor.memory import estimate
from advisor.record import replace
from advisor.run import Run
from advisor.util import gib

Planner = Callable[[Run, bool], Plan]
"""Plans for a run, with safe steps alone or with all."""


def with_advice(run: Run, finding: Finding, plan: Plan, planner: Planner) -> Finding:
    """The answer to "does batch size one fit?", how far the plan gets, and the hardware that would do."""
    found = estimate(run)
    if found is None or finding.rule != (OF_HOST if found.lacks_host else "does-not-fit"):
        return finding
    lines = [outcome(plan), *_safe_outcome(run, plan, planner)]
    if not found.lacks_host:
        lines.insert(0, _batch_of_one(run))
    if plan.verdict == "does-not-fit":
        from advisor.engine.hardware_that_fits import hardware_that_would_do

        enough = hardware_that_would_do(run, lambda other: planner(other, False))
        fits = f"with the same steps it would fit {' or '.join(enough)}"
        lines.append(fits if enough else "no hardware in the catalogue is enough")
    lines.append(f"if you know that it fits, add `# advisor: ignore[{finding.rule}] reason` to this line")
    return replace(finding, help=tuple(lines))


def _batch_of_one(run: Run) -> str:
    """What a micro batch of one row needs, all else as it is."""
    if run.micro_batch_size == 1:
        return "the batch size is 1 already"
    single = estimate(replace(run, micro_batch_size=1, eval_batch_size=1))
    assert single is not None
    verdict = {"fits": "fits", "tight": "tight", "does-not-fit": "does not fit either", "unknown": "unknown"}[
        single.verdict
    ] + single.condition
    return f"batch size 1 needs {gib(single.needed.high)}: {verdict}"


def _safe_outcome(run: Run, plan: Plan, planner: Planner) -> list[str]:
    """How far the steps that train the same thing get, where the plan has others."""
    unsafe = [step.rule.id for step in plan.steps if not step.safe]
    if not unsafe:
        return []
    alone = planner(run, True)
    reached = gib(alone.end.estimate.needed.high) + alone.end.estimate.condition
    named = {step.rule.id for step in plan.steps}
    more = [step.rule.id for step in alone.steps if step.rule.id not in named]
    if alone.verdict != "does-not-fit":
        taken = ", ".join(step.rule.id for step in alone.steps)
        return [f"or keep the training as it is: `--fix` brings it down to {reached} ({taken})"]
    others = f" (with {', '.join(more)}, which this plan leaves out)" if more else ""
    return [f"with the same training it reaches {reached}{others}; `--fix --unsafe-fixes` adds {', '.join(unsafe)}"]


def outcome(plan: Plan) -> str:
    """Where the plan ends."""
    end = plan.end.estimate
    if end.lacks_host:
        return f"all edits together still need {gib(end.host_peak)} of host memory on each node"
    if plan.verdict == "does-not-fit":
        missing = end.needed.high - end.usable
        return f"all edits together reach {gib(end.needed.high)}: {gib(missing)} ({missing:,} bytes) too much"
    reached = gib(end.needed.high) + end.condition
    unsafe = sum(not step.safe for step in plan.steps)
    trained = f"{unsafe} of them change what is trained" if unsafe else "the training stays the same"
    if len(plan.steps) == 1:
        return f"1 edit brings it down to {reached}; {'it changes what is trained' if unsafe else trained}"
    return f"{len(plan.steps)} edits bring it down to {reached}; {trained}"
