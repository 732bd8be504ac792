"""What a call asks of every check, and which rules and plans that leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from advisor.engine.advice import Planner
from advisor.engine.bases import Tier
from advisor.engine.finding import PLANNED
from advisor.engine.plan_memo import PlanMemo
from advisor.engine.registry import Tiers, built_in_rules, flowchart
from advisor.engine.rule import Rule, Stage
from advisor.record import record, replace


@record(eq=False)
class Options:
    """What the call asks of every check."""

    flowchart: str = "default"
    flowcharts: Mapping[str, Tiers] | None = None
    """Flowcharts that are not the advisor's own."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    safe_only: bool = False
    """Plan with safe steps alone: what ``--fix`` without ``--unsafe-fixes`` may write."""
    speed: bool = True
    faster: bool = False
    """Whether ``--fix`` also writes what the room that is left is good for."""
    row_length: int | None = None
    """Tokens of a row for a second estimate, which no verdict rests on."""
    plans: bool = True
    """Make a plan for a run that does not fit."""
    replays: bool = True
    """Whether a replay of the step decides about a tight run; it takes a second where an answer must come sooner."""
    details: bool = False
    """Also the time of a step and the basis of the estimate, which JSON and ``estimate`` show."""
    reserved: bool = True
    """Whether details have the reserved range of a replay, half a second a run, and not the published one."""
    extra_rules: Mapping[str, Rule] | None = None
    answers: bool = False
    """Whether the report has an answer, with its options."""
    others: bool = False
    """Whether other hardware is among them."""
    outlook: bool = False
    """Whether the answer also says how large a batch there is room for, and what helps where links take the time."""
    steps: bool = False
    """Whether options keep the steps of the plan behind them, with the runs before and after: an editor offers each."""
    given: tuple[str, ...] = ()
    """The words of the call that say where and with what the run will be, as a command repeats them."""
    memo: PlanMemo = field(default_factory=PlanMemo)

    def wants(self, rule: str) -> bool:
        """Whether a rule is selected and not ignored."""
        return (not self.select or rule in self.select) and rule not in self.ignore

    def without(self, rules: Sequence[str]) -> "Options":
        """The same with more rules ignored."""
        return replace(self, ignore=(*self.ignore, *rules))

    def consults(self, rule: str) -> bool:
        """Whether a rule that is wanted is there: those of ``--validate`` and ``--data`` are only with that option."""
        asked = rule.endswith("-says") or rule.startswith("data-")
        return self.wants(rule) and (not asked or rule in (self.extra_rules or {}))


def rules_of(stage: Stage, options: Options) -> Mapping[str, Rule]:
    """The rules of one stage, the organisation's own included."""
    extra = {name: rule for name, rule in (options.extra_rules or {}).items() if rule.stage == stage}
    return {**built_in_rules(stage), **extra}


def planner(options: Options) -> Planner:
    """Plans along the flowchart that is asked for."""
    flowchart = tiers_of(options)
    return lambda run, safe_only: options.memo.plan(run, flowchart, safe_only=safe_only or options.safe_only)


def tiers_of(options: Options) -> tuple[Tier, ...]:
    """The flowchart's tiers without ignored rules. A selection with a verdict has all of them."""
    rules = {**rules_of("speed", options), **rules_of("fit", options)}
    chosen = None if not set(PLANNED.values()).isdisjoint(options.select) else options.select

    def wanted(name: str) -> bool:
        return name in rules and name not in options.ignore and (not chosen or name in chosen)

    tiers = flowchart(options.flowchart, options.flowcharts)
    found = (Tier(name, tuple(rules[id_] for id_ in ids if wanted(id_))) for name, ids in tiers)
    return tuple(tier for tier in found if tier.rules)


def fit_rules(options: Options) -> Mapping[str, Rule]:
    """The rules of the flowchart that is asked for."""
    return {rule.id: rule for tier in tiers_of(options) for rule in tier.rules}


def room_rules(options: Options) -> Mapping[str, Rule]:
    """The rules that are asked for, of those that a way back may be made of."""
    rules = {**rules_of("fit", options), **rules_of("speed", options)}
    return {name: rule for name, rule in rules.items() if options.wants(name)}
