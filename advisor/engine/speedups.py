"""The way back: where there is room, the sequence of edits with which the same training is fastest."""

from collections.abc import Iterable, Mapping

from advisor.engine.axes import KNOWN, families, leaves
from advisor.engine.plan_steps import Goal, plan_steps
from advisor.engine.points import Walk
from advisor.engine.regression import new_errors
from advisor.engine.rule import Rule
from advisor.engine.search import fastest
from advisor.engine.states import State, Step
from advisor.engine.steps import alternatives, host_suffices, run_after
from advisor.run import Run

GAIN = 0.95
"""A sequence that leaves more of the time than this is not worth an edit."""
MOST_ENDS = 12
ORDER = (
    "less-offload",
    "no-activation-offloading",
    "plain-ddp",
    "lower-zero-stage",
    "hsdp",
    "activation-offloading",
    "hpz",
    "fsdp-no-reshard",
    "flash-attention",
    "fused-loss",
    "fused-kernels",
    "smaller-micro-batch",
    "no-checkpointing",
    "larger-micro-batch",
)
"""The rules that a sequence is made of, in the order in which it is told."""
FOR_FULL_ROWS = frozenset({"smaller-micro-batch"})
"""What is slower where rows are short."""
BETWEEN_NODES = frozenset({"activation-offloading"})
"""Those that make room for what spares the network between nodes, and are tried where there is one."""


def sequence(start: State, rules: Mapping[str, Rule]) -> tuple[Step, ...]:
    """The steps that make a run that fits fastest, and train the same; none where they gain too little.

    What fits well is not taken to the limit for its speed.
    """
    hardware = start.run.hardware
    left_out = BETWEEN_NODES if hardware is None or hardware.nodes == 1 else frozenset[str]()
    left_out |= frozenset() if rows_are_full(start.run) else FOR_FULL_ROWS
    chosen = {name: rules[name] for name in ORDER if name in rules and name not in left_out}
    if start.seconds is None or start.shown_seconds is None or not chosen:
        return ()
    walk = Walk(start, chosen, chosen, safe_only=True)
    order = {name: rank for rank, name in enumerate(ORDER)}
    everywhere = [leaf for family in families(walk, ()) for leaf in leaves(walk, family)]
    found = fastest(walk, everywhere, below=GAIN * start.seconds, with_room=True)
    for point in sorted(found, key=lambda point: point.seconds)[:MOST_ENDS]:
        steps = plan_steps(walk, order, point.moves, Goal("fits", seconds=point.seconds, with_room=True))
        if steps and (steps[-1].after.seconds or 0.0) <= GAIN * start.seconds:
            return steps
    return ()


def rows_are_full(run: Run) -> bool:
    """Whether a micro batch of one row fills it: rows that are neither packed nor padded may be short."""
    return run.sample_packing or run.pads_to_sequence_len


def offers(start: State, rules: Iterable[Rule]) -> list[Step]:
    """What else there is room for, whose time is not known: each on its own, kept only if the run still fits."""
    others = (rule for rule in rules if rule.stage == "speed" and rule.id not in {*ORDER, *KNOWN})
    return [step for rule in others if (step := back(rule, start)) is not None]


def back(rule: Rule, start: State) -> Step | None:
    """The alternative of a rule that gives back most, among those with which the run still fits."""
    for edits in reversed(alternatives(rule, start.run)) if rule.when(start.run) else ():
        run = run_after(start.run, edits, rule)
        if run is None or (after := State(run)).verdict != "fits" or not host_suffices(start, after):
            continue
        if not new_errors(start.run, after.run):
            return Step(rule, edits, start, after)
    return None
