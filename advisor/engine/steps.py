"""One step: a rule's edits made to a run, and why a step cannot be taken."""

from collections.abc import Mapping, Sequence

from advisor.engine.regression import new_errors
from advisor.engine.rule import Rule
from advisor.engine.skipped import Skipped
from advisor.engine.states import State, Step
from advisor.errors import InputError
from advisor.memory import lacks_host
from advisor.run import Run
from advisor.run.build import edited
from advisor.run.deepspeed import EDITS
from advisor.run.edits import RunEdits
from advisor.util import gib


def run_after(run: Run, edits: RunEdits, rule: Rule) -> Run | None:
    """The run after a rule's edits; None where they would put a value in force that cannot be read.

    A DeepSpeed config from outside the repository is not copied into it, so there are no edits of one.
    """
    if run.has_foreign_json and not edits.keys().isdisjoint(EDITS):
        return None
    try:
        after = edited(run, edits, rule.id)
    except InputError:
        return None
    return None if after.unreadable else after


def alternatives(rule: Rule, run: Run) -> Sequence[RunEdits]:
    """A rule's edits, mildest first."""
    edits = rule.edits(run)
    return [edits] if isinstance(edits, Mapping) else list(edits)


def best_step(rule: Rule, state: State) -> Step | Skipped:
    """The mildest alternative that fits, else the one that lowers the peak most; or why none helps."""
    made = [
        Step(rule, edits, state, State(after))
        for edits in alternatives(rule, state.run)
        if (after := run_after(state.run, edits, rule)) is not None
    ]
    if not made:
        foreign = state.run.has_foreign_json
        return Skipped(rule.id, "the DeepSpeed JSON is outside the repository" if foreign else "nothing left to change")
    tried = [step for step in made if not step.after.estimate.uncounted]
    if not tried:
        return Skipped(rule.id, what_is_uncounted(made[0].after))
    for step in tried:
        if step.after.verdict == "fits" and host_suffices(state, step.after) and not added_errors(state, step.after):
            return step
    sound = [step for step in sorted(tried, key=lambda step: step.after.needed) if not added_errors(state, step.after)]
    if not sound:
        return Skipped(rule.id, f"would stop the run: {', '.join(added_errors(state, tried[0].after))}")
    best = next((step for step in sound if host_suffices(state, step.after)), None)
    if best is None:
        return Skipped(rule.id, too_much_for_the_host(sound[0].after))
    if best.after.needed >= state.needed:
        return Skipped(rule.id, f"would not lower the peak: {gib(state.needed)} -> {gib(best.after.needed)} per GPU")
    return best


def added_errors(before: State, after: State) -> list[str]:
    """The rules that find an error in a state and found none in the one before; its verdict speaks for the memory."""
    return new_errors(before.run, after.run, memory=False)


def what_is_uncounted(state: State) -> str:
    """Why a step is skipped whose run nobody can say to fit."""
    parts = ", ".join(f"`{one.key}` ({one.what})" for one in state.estimate.uncounted)
    return f"memory would not be known: nothing counts {parts}"


def host_suffices(before: State, after: State) -> bool:
    """Whether the node's memory holds what is offloaded: what is stated or detected, else what is common.

    A run that was written for more than is common may have that much after a step too.
    """
    hardware = after.run.hardware
    if hardware is None:
        return True
    if hardware.host_bytes is not None:
        return not lacks_host(after.run)  # between the ends of the range the verdict is tight
    return after.host_peak <= max(hardware.common_host_bytes, before.host_peak)


def too_much_for_the_host(state: State) -> str:
    """Why a step is skipped that offloads more than the node has."""
    hardware = state.run.hardware
    assert hardware is not None
    remedy = "; if yours has more, state it with `host=`" if hardware.host_bytes is None else ""
    return f"needs {gib(state.host_peak)} of host memory a node, {hardware.host_words}{remedy}"
