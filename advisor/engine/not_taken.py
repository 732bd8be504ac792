"""Ways that are as near as the one to take, and why another is taken."""

from collections.abc import Collection, Iterable, Iterator

from advisor.engine.answer import NotTaken, Option
from advisor.engine.axes import LENGTH
from advisor.engine.flowchart_status import offloads
from advisor.engine.options import planner
from advisor.engine.states import Plan
from advisor.engine.ways_out import ADAPTERS, Asked
from advisor.engine.what_changes import OFFLOADS
from advisor.util import counted

DEEPSPEED = ("zero-1", "zero-2", "zero-3", "offload-optimizer")
"""The steps that bring DeepSpeed, and its fp32 masters with it."""
MUCH_FASTER = 1.15
EIGHT_BIT = "eight-bit-optimizer"
BRINGS_ADAPTERS = tuple(rule for rule, _ in ADAPTERS)


def not_taken(asked: Asked, chosen: Option | None) -> Iterator[NotTaken]:
    """FSDP2 where DeepSpeed came or offloads, all weights where adapters came; then the steps that are no help."""
    if chosen is not None and (asked.options.details or asked.options.outlook):
        brought = {step.rule for step in chosen.steps}
        if chosen.letter == "A" and not brought.isdisjoint(DEEPSPEED) and asked.run.sharding is None:
            yield from _without_masters(asked, chosen)
        if chosen.letter == "B" and not brought.isdisjoint(BRINGS_ADAPTERS) and asked.run.adapter is None:
            yield from _with_all_weights(asked)
        if chosen.letter == "A" and not brought.isdisjoint(OFFLOADS) and asked.run.sharding is not None:
            yield from _on_the_gpus(asked)
    for skipped in asked.report.skipped:
        yield NotTaken(skipped.rule, skipped.reason)


def _without_masters(asked: Asked, chosen: Option) -> Iterator[NotTaken]:
    """The plan that FSDP2 makes, where it takes less time or fewer edits than DeepSpeed's."""
    plan = planner(asked.options.without(DEEPSPEED))(asked.run, True)
    if "fsdp-2" in plan.names and plan.verdict == "fits":
        why = "its weights have no fp32 masters, so small updates are lost"
        if plan.end.run.has_masters:
            why = _why_first(len(plan.steps), plan.end.shown_seconds, chosen)
        yield _way("FSDP2 in place of DeepSpeed", plan, f"{why}; `--flowchart pytorch` prefers it")


def _on_the_gpus(asked: Asked) -> Iterator[NotTaken]:
    """The plan that trains all weights without the host, where one does by the masters or the bits of the states."""
    if asked.run.adapter is not None:
        return
    ignored = (*OFFLOADS, *BRINGS_ADAPTERS)
    plan = planner(asked.options.without((*ignored, LENGTH)))(asked.run, False)
    if plan.verdict == "fits" and not plan.safe and not offloads(plan.end.run):
        kept = _named(plan, (EIGHT_BIT, "fsdp-2", "half-masters", "without-deepspeed"))
        yield _way(f"Without the host, {kept}", plan, f"it changes what is trained; {_written_without(ignored)}")


def _why_first(edits: int, seconds: float | None, chosen: Option) -> str:
    """Why DeepSpeed comes before FSDP2, which takes so many edits and seconds."""
    own = sum(step.memory is not None for step in chosen.steps)
    is_faster = MUCH_FASTER * (seconds or 0.0) < (chosen.seconds or 0.0)
    if is_faster and own < edits:
        return f"DeepSpeed takes {own}"
    return "DeepSpeed comes first" if is_faster else "DeepSpeed comes first unless it takes 15 % longer"


def _with_all_weights(asked: Asked) -> Iterator[NotTaken]:
    """The plan that trains all weights all the same, where whole rows fit with one."""
    plan = planner(asked.options.without((*BRINGS_ADAPTERS, LENGTH)))(asked.run, False)
    if plan.steps and plan.verdict == "fits" and plan.end.run.adapter is None:
        yield _way(
            f"All weights trained ({_named(plan, plan.names)})",
            plan,
            f"in the flowchart adapters come first; {_written_without(BRINGS_ADAPTERS)}",
            keeps_more=True,
        )


def _written_without(ignored: Iterable[str]) -> str:
    """What writes a plan of all but these rules."""
    return f"`{' '.join(['--fix --unsafe-fixes', *(f'--ignore {rule}' for rule in ignored)])}` writes it"


def _named(plan: Plan, rules: Collection[str]) -> str:
    """What steps of these rules are called."""
    steps = (step for step in plan.steps if step.rule.id in rules)
    return "; ".join(step.rule.named(step.before.run, step.after.run) for step in steps)


def _way(title: str, plan: Plan, because: str, *, keeps_more: bool = False) -> NotTaken:
    """A plan that is not taken, with its figures."""
    end = plan.end
    return NotTaken(
        f"{title}, {counted(len(plan.steps), 'edit')}",
        because,
        end.estimate.needed.high,
        end.shown_seconds,
        keeps_more=keeps_more,
        edits=len(plan.steps),
    )
