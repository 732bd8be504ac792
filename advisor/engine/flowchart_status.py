"""The user's own flowchart next to a plan: what became of each of its rungs."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal

from advisor.engine.finding import Rung
from advisor.engine.rule import Rule
from advisor.engine.states import Plan, State, trains_the_same
from advisor.engine.steps import alternatives, host_suffices, run_after, too_much_for_the_host, what_is_uncounted
from advisor.memory.activations import checkpoints
from advisor.record import record
from advisor.run import Fsdp, Run, Zero
from advisor.util import gib, seconds

SLOWER = 1.01
"""Below this a rung is not called slower."""


@record(eq=False)
class _RungKind:
    """A rung: its rules, the one that stands for it first, and how a run shows that it stands on it."""

    name: str
    rules: tuple[str, ...]
    done: Callable[[Run], str]
    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Rules that go some of the way, and what they do of it."""


def _zero_done(stage: int) -> Callable[[Run], str]:
    """How a run shards at least what this stage does."""

    def said(run: Run) -> str:
        match run.sharding:
            case Zero(stage=found) if found >= stage:
                return f"as ZeRO-{found}" if found > stage else "done"
            case Fsdp(version=version, reshard_after_forward=whole) if stage < 3 or whole:
                return f"as FSDP{version if version > 1 else ''}"
            case _:
                return ""

    return said


def offloads(run: Run) -> bool:
    """Whether states or weights lie on the host."""
    match run.sharding:
        case Zero(offload_optimizer="gpu", offload_params="gpu") | Fsdp(offload_params=False) | None:
            return False
        case _:
            return True


def when(holds: Callable[[Run], bool]) -> Callable[[Run], str]:
    """``done`` where something holds."""
    return lambda run: "done" if holds(run) else ""


KINDS = (
    _RungKind("mixed precision", ("mixed-precision",), when(lambda run: run.precision != "fp32")),
    _RungKind("ZeRO-2", ("zero-2",), _zero_done(2)),
    _RungKind("ZeRO-3", ("zero-3", "fsdp-2"), _zero_done(3)),
    _RungKind("gradient checkpointing", ("gradient-checkpointing",), when(checkpoints)),
    _RungKind("LoRA", ("lora",), when(lambda run: run.adapter is not None)),
    _RungKind(
        "quantization",
        ("qlora", "quantize-as-asked", "quantize-moe-experts", "fsdp-qlora", "eight-bit-optimizer"),
        when(lambda run: run.quantization is not None),
    ),
    _RungKind(
        "offload",
        ("offload-optimizer", "offload-params", "half-precision-offload"),
        when(offloads),
        {"activation-offloading": "activations alone"},
    ),
)


def rungs_of(start: State, plan: Plan, rules: Mapping[str, Rule]) -> tuple[Rung, ...]:
    """Every rung with its word: done, taken, not needed, slower here, would change training, impossible."""
    return tuple(rung_of(kind, start, plan, rules) for kind in KINDS)


def rung_of(kind: _RungKind, start: State, plan: Plan, rules: Mapping[str, Rule]) -> Rung:
    """One rung. Where the run and the plan leave it out, its first rule that applies is tried on the plan's end."""
    again = start.run.fsdp is not None  # from FSDP1 to FSDP2
    taken = [rule for rule in plan.names if rule in kind.rules and not (again and rule == "fsdp-2")]
    before, after = kind.done(start.run), kind.done(plan.end.run)
    if taken:
        return Rung(kind.name, "taken", "" if after in {"", "done"} else after)
    if before and not after:
        return Rung(kind.name, "taken back")
    if after:
        return Rung(kind.name, "done" if before else "taken", "" if after == "done" else after)
    if part := next((part for id_, part in kind.parts.items() if id_ in plan.names), ""):
        return Rung(kind.name, "taken", part)
    there = [rules[id_] for id_ in kind.rules if id_ in rules]
    if not there:
        return Rung(kind.name, "ignored")
    return _untaken(kind.name, next((rule for rule in there if rule.when(plan.end.run)), there[0]), plan.end)


def _untaken(name: str, rule: Rule, end: State) -> Rung:
    """Why a rung is not taken: tried where the plan ends."""
    offered = alternatives(rule, end.run) if rule.when(end.run) else ()
    run = run_after(end.run, offered[0], rule) if offered else None
    if run is None:
        return Rung(name, "impossible", why_not(name, end.run))
    after = State(run)
    if after.estimate.uncounted:
        return Rung(name, "impossible", what_is_uncounted(after))
    if not host_suffices(end, after):
        return Rung(name, "impossible", too_much_for_the_host(after))
    if not trains_the_same(rule, end.run, run):
        return Rung(name, "would change training", f"{gib(end.needed).split()[0]} -> {gib(after.needed)}")
    return Rung(name, *compared(end, after))


Word = Literal["not needed", "slower here"]


def compared(end: State, after: State) -> tuple[Word, str]:
    """How much slower the run would be."""
    if end.seconds is None or after.seconds is None or after.seconds <= SLOWER * end.seconds:
        return "not needed", ""
    shown = end.shown_seconds is not None
    return "slower here", f"+{seconds(after.seconds - end.seconds)} s a step" if shown else ""


def why_not(name: str, run: Run) -> str:
    """What stands in the way, where one glance shows it."""
    if name.startswith("ZeRO"):
        return "one GPU" if run.world_size == 1 else ""
    return ""
