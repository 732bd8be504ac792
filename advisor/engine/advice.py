"""Advice that goes with the verdict: does batch size one fit, how far the plan gets, which hardware would do."""

from collections.abc import Callable

from advisor.engine.finding import OF_HOST, Finding
from advisor.engine.hardware_that_fits import hardware_that_would_do
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
        enough = hardware_that_would_do(run, lambda other: planner(other, False))
        fits = f"with the same steps it would fit {' or '.join(enough)}"
        lines.append(fits if enough else "no hardware in the catalogue is enough")
    lines.append(f"known to fit? write `# advisor: ignore[{finding.rule}] reason` at the end of this line")
    return replace(finding, help=tuple(lines))


def _batch_of_one(run: Run) -> str:
    """What a micro batch of one row needs, all else as it is."""
    single = estimate(replace(run, micro_batch_size=1, eval_batch_size=1))
    assert single is not None
    verdict = {"fits": "fits", "tight": "tight", "does-not-fit": "does not fit either", "unknown": "unknown"}[
        single.verdict
    ] + single.condition
    prefix = "batch size one, as here," if run.micro_batch_size == 1 else "batch size one"
    return f"{prefix} needs {gib(single.needed.low)}: {verdict if run.micro_batch_size > 1 else 'does not fit'}"


def _safe_outcome(run: Run, plan: Plan, planner: Planner) -> list[str]:
    """How far the steps that train the same thing get, where the plan has others."""
    unsafe = [step.rule.id for step in plan.steps if not step.safe]
    if not unsafe:
        return []
    alone = planner(run, True)
    reached = gib(alone.end.estimate.needed.low) + alone.end.estimate.condition
    named = {step.rule.id for step in plan.steps}
    more = [step.rule.id for step in alone.steps if step.rule.id not in named]
    if alone.verdict != "does-not-fit":
        taken = ", ".join(step.rule.id for step in alone.steps)
        return [f"`--fix` takes a way that does not change what is trained, to {reached}: {taken}"]
    others = f" (with {', '.join(more)}, which this plan leaves out)" if more else ""
    return [f"safe steps alone reach {reached}{others}; `--fix --unsafe-fixes` adds {', '.join(unsafe)}"]


def outcome(plan: Plan) -> str:
    """Where the plan ends."""
    end = plan.end.estimate
    if end.lacks_host:
        return f"all steps together still need {gib(end.host_needed.low)} of host memory on each node"
    if plan.verdict == "does-not-fit":
        missing = end.needed.low - end.usable
        return f"all steps together reach {gib(end.needed.low)}: {gib(missing)} ({missing:,} bytes) too much"
    reached = gib(end.needed.low) + end.condition
    unsafe = sum(not step.safe for step in plan.steps)
    if len(plan.steps) == 1:
        changes = ", and changes what is trained" if unsafe else ", and does not change what is trained"
        return f"1 step reaches {reached}{changes}"
    changes = f", {unsafe} of them changing what is trained" if unsafe else ", none of which changes what is trained"
    return f"{len(plan.steps)} steps reach {reached}{changes}"
