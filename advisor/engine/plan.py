"""The flowchart's loop: the fewest edits, in order, until the run fits; and the way back when there is room."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from advisor.engine.finding import Skipped
from advisor.engine.regression import new_errors
from advisor.engine.rule import Rule
from advisor.errors import InputError
from advisor.hardware import Hardware, larger_gpus
from advisor.memory import Estimate, Verdict, estimate
from advisor.record import record
from advisor.run import Run
from advisor.run.build import edited, rebuilt
from advisor.run.deepspeed import EDITS
from advisor.run.edits import RunEdits
from advisor.util import gib

RANK: Mapping[Verdict, int] = {"fits": 0, "tight": 1, "does-not-fit": 2, "unknown": 3}


@record(eq=False)
class State:
    """A run and its estimate."""

    run: Run
    estimate: Estimate

    @property
    def needed(self) -> int:
        """Bytes with which the run may just go through, on the GPU that needs most."""
        return self.estimate.needed.low


@record(eq=False)
class Step:
    """One edit of the plan: the rule, the edits chosen among its alternatives, the state before and after."""

    rule: Rule
    edits: RunEdits
    before: State
    after: State

    @property
    def safe(self) -> bool:
        """Whether the same thing is trained after this step."""
        return self.rule.is_safe(self.before.run)


@record(eq=False)
class Plan:
    """The steps that are needed, in order; what was skipped and why; where it ends."""

    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...]
    end: State

    @property
    def names(self) -> tuple[str, ...]:
        """The rules of its steps, in order."""
        return tuple(step.rule.id for step in self.steps)

    @property
    def safe(self) -> bool:
        """Whether every step trains the same thing."""
        return all(step.safe for step in self.steps)

    @property
    def verdict(self) -> Verdict:
        """The verdict after all steps."""
        return self.end.estimate.verdict


def state_of(run: Run) -> State:
    """A run with its estimate; the model and the hardware must be known."""
    found = estimate(run)
    assert found is not None, "a plan needs a model and hardware"
    return State(run, found)


def state_after(state: State, edits: RunEdits, rule: Rule) -> State | None:
    """The state after a rule's edits; None where they would put a value in force that cannot be read.

    A DeepSpeed config from outside the repository is not copied into it, so there are no edits of one.
    """
    if state.run.has_foreign_json and not edits.keys().isdisjoint(EDITS):
        return None
    try:
        after = edited(state.run, edits, rule.id)
    except InputError:
        return None
    return None if after.unreadable else state_of(after)


def plan_fit(start: State, flowchart: Iterable[Rule], *, safe_only: bool = False) -> Plan:
    """Walk the flowchart until the run fits, then drop every step without which the final run still does."""
    state = start
    steps: list[Step] = []
    skipped: list[Skipped] = []
    order = {rule.id: rule for rule in flowchart}
    for rule in order.values():
        if state.estimate.verdict == "fits":
            break
        if not rule.when(state.run):
            continue
        safe = rule.is_safe(state.run)
        if not safe and (safe_only or state.estimate.verdict == "tight"):
            continue
        step = best_step(rule, state)
        if isinstance(step, Skipped):
            skipped.append(step)
            continue
        steps += [step, *safe_steps_again(step.after, [order[one.rule] for one in skipped], steps)]
        state = steps[-1].after
    kept = milder(needed(steps))
    return Plan(tuple(kept), tuple(skipped_from(start, kept, skipped, order)), end_of(start, kept))


def safe_steps_again(state: State, skipped: Iterable[Rule], taken: Sequence[Step]) -> list[Step]:
    """Safe steps that helped nothing where they stand in the flowchart, and do now: the peak is another phase's."""
    again: list[Step] = []
    done = {step.rule.id for step in taken}
    for rule in skipped:
        if state.estimate.verdict == "fits":
            break
        if rule.id in done or not rule.when(state.run) or not rule.is_safe(state.run):
            continue
        step = best_step(rule, state)
        if isinstance(step, Step):
            again.append(step)
            state = step.after
    return again


def skipped_from(
    start: State, kept: Sequence[Step], skipped: Sequence[Skipped], order: Mapping[str, Rule]
) -> list[Skipped]:
    """The skipped steps, with numbers that count from where the steps that are kept stand at them."""
    ranks = {rule: rank for rank, rule in enumerate(order)}
    taken = {step.rule.id for step in kept}
    told: list[Skipped] = []
    for one in skipped:
        if one.rule in taken:
            continue
        before = [step for step in kept if ranks[step.rule.id] < ranks[one.rule]]
        state = end_of(start, before)
        again = best_step(order[one.rule], state) if order[one.rule].when(state.run) else None
        told += [again] if isinstance(again, Skipped) else []
    return told


def end_of(start: State, steps: Sequence[Step]) -> State:
    """Where the steps lead from ``start``."""
    return steps[-1].after if steps else start


def best_step(rule: Rule, state: State) -> Step | Skipped:
    """The mildest alternative that fits, else the one that lowers the peak most; or why none helps."""
    tried = [
        Step(rule, edits, state, after)
        for edits in alternatives(rule, state.run)
        if (after := state_after(state, edits, rule)) is not None
    ]
    if not tried:
        foreign = state.run.has_foreign_json
        return Skipped(rule.id, "the DeepSpeed JSON is outside the repository" if foreign else "nothing left to change")
    for step in tried:
        if step.after.estimate.verdict == "fits" and host_suffices(state, step.after) and not added_errors(step):
            return step
    sound = [step for step in sorted(tried, key=lambda step: step.after.needed) if not added_errors(step)]
    if not sound:
        return Skipped(rule.id, f"would stop the run: {', '.join(added_errors(tried[0]))}")
    best = next((step for step in sound if host_suffices(state, step.after)), None)
    if best is None:
        return Skipped(rule.id, too_much_for_the_host(sound[0].after))
    if best.after.needed >= state.needed:
        return Skipped(rule.id, f"would not lower the peak: {gib(state.needed)} -> {gib(best.after.needed)} per GPU")
    return best


def added_errors(step: Step) -> list[str]:
    """The rules that find an error after a step and found none before it; its verdict speaks for the memory."""
    return new_errors(step.before.run, step.after.run, memory=False)


def alternatives(rule: Rule, run: Run) -> Sequence[RunEdits]:
    """A rule's edits, mildest first."""
    edits = rule.edits(run)
    return [edits] if isinstance(edits, Mapping) else list(edits)


def host_suffices(before: State, after: State) -> bool:
    """Whether the node's memory holds what is offloaded: what is stated or detected, else what is common.

    A run that was written for more than is common may have that much after a step too.
    """
    hardware, peak = after.run.hardware, after.estimate.host_peak
    if hardware is None:
        return True
    if hardware.host_bytes is not None:
        return peak <= hardware.host_bytes
    return peak <= max(hardware.common_host_bytes, before.estimate.host_peak)


def too_much_for_the_host(state: State) -> str:
    """Why a step is skipped that offloads more than the node has."""
    hardware = state.run.hardware
    assert hardware is not None
    remedy = "; if yours has more, state it with `host=`" if hardware.host_bytes is None else ""
    return f"needs {gib(state.estimate.host_peak)} of host memory a node, {hardware.host_words}{remedy}"


def needed(steps: Sequence[Step]) -> list[Step]:
    """Drop, last (most costly) step first, every step the plan does not need."""
    kept = list(steps)
    if not kept:
        return kept
    goal = RANK[kept[-1].after.estimate.verdict]
    if goal == RANK["does-not-fit"]:
        return kept
    for index in reversed(range(len(steps))):
        before = kept[index].before
        rest = replayed(before, kept[index + 1 :])
        if rest is not None and reaches(before, rest, goal):
            kept[index:] = rest
    return kept


def reaches(start: State, steps: Sequence[Step], goal: int) -> bool:
    """Whether the run after these steps has a verdict at least as good."""
    return RANK[end_of(start, steps).estimate.verdict] <= goal


def replayed(start: State, steps: Sequence[Step]) -> list[Step] | None:
    """The same rules with the same edits from another start; None if one no longer applies or adds an error."""
    state = start
    made: list[Step] = []
    for step in steps:
        if not step.rule.when(state.run):
            return None
        offered = alternatives(step.rule, state.run)
        if not offered:
            return None
        edits = step.edits if step.edits in offered else offered[-1]
        after = state_after(state, edits, step.rule)
        if after is None or not host_suffices(state, after):
            return None
        again = Step(step.rule, edits, state, after)
        if added_errors(again):
            return None
        made.append(again)
        state = after
    return made


def milder(steps: list[Step]) -> list[Step]:
    """Where a rule has alternatives, the mildest with which the end is as good."""
    if not steps or steps[-1].after.estimate.verdict == "does-not-fit":
        return steps
    goal = RANK[steps[-1].after.estimate.verdict]
    for index, step in enumerate(steps):
        for edits in alternatives(step.rule, step.before.run):
            if edits == step.edits:
                break
            rest = replayed(step.before, [replace(step, edits=edits), *steps[index + 1 :]])
            if rest is not None and reaches(step.before, rest, goal):
                return milder([*steps[:index], *rest])
    return steps


def plan_speed(start: State, rules: Iterable[Rule]) -> list[Step]:
    """What could be given back, each on its own, kept only if the run still fits."""
    offers: list[Step] = []
    for rule in rules:
        if not rule.when(start.run):
            continue
        for edits in reversed(alternatives(rule, start.run)):
            after = state_after(start, edits, rule)
            if after is None or after.estimate.verdict != "fits" or not host_suffices(start, after):
                continue
            if not new_errors(start.run, after.run):
                offers.append(Step(rule, edits, start, after))
                break
    return offers


def hardware_that_would_do(run: Run, planned: Callable[[Run], Plan]) -> list[str]:
    """The smallest number of these GPUs, and the next larger card, with which a plan ends well, and its condition."""
    hardware = run.hardware
    assert hardware is not None
    found: list[str] = []
    counts = [n for n in (2, 4, 8, 16, 32, 64) if n > hardware.world_size]
    for count in counts:
        nodes = max(1, -(-count // hardware.gpu.gpus_per_node))
        more = replace(hardware, gpus_per_node=count // nodes, nodes=nodes)
        plan = planned(on_hardware(run, more))
        if plan.verdict in {"fits", "tight"}:
            found.append(more.title + plan.end.estimate.condition)
            break
    for gpu in larger_gpus(hardware.gpu):
        larger = replace(hardware, gpu=gpu, free_bytes=None)
        plan = planned(on_hardware(run, larger))
        if plan.verdict in {"fits", "tight"}:
            found.append(larger.title + plan.end.estimate.condition)
            break
    return found


def on_hardware(run: Run, hardware: Hardware) -> Run:
    """The same documents on other hardware, read again: precision and kernels may depend on it."""
    return rebuilt(replace(run, hardware=hardware), run.config, run.deepspeed)
