"""The plan: the first tier of the flowchart in which the run fits, and there the fastest point, told step by step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from advisor.engine.axes import FIRST, LENGTH, families
from advisor.engine.finding import Skipped
from advisor.engine.plan_steps import Goal, plan_steps
from advisor.engine.points import Moves, Walk, with_rules
from advisor.engine.rule import Rule
from advisor.engine.search import EQUAL, Point, fastest, is_roomy, leanest, points, usable_of
from advisor.engine.states import Plan, State
from advisor.engine.steps import alternatives, best_step
from advisor.record import record

LAST = frozenset({"no-checkpointing", "larger-micro-batch"})
"""What uses the room that the other steps make is told after them."""
MOST_ENDS = 24
"""So many of the best points are tried as the end of a plan: one that adds an error is struck out."""


@record(eq=False)
class Tier:
    """What sort of run it will be: a name, and the rules that come with it, in the order in which they are told."""

    name: str
    rules: tuple[Rule, ...]


@record(eq=False)
class Search:
    """A plan in the making: where it may go, the order in which it is told, and the families that do not fit."""

    walk: Walk
    order: Mapping[str, int]
    tried: set[Moves] = field(default_factory=set[Moves])
    lean: list[Point] = field(default_factory=list[Point])
    """Of each part that was searched in vain, what needs least memory."""
    vain: list[tuple[Walk, list[Moves]]] = field(default_factory=list["tuple[Walk, list[Moves]]"])
    """Those parts."""


def plan_fit(start: State, flowchart: Sequence[Tier], *, safe_only: bool = False) -> Plan:
    """The plan for a run that does not fit. One that is tight as written gets safe steps alone."""
    if start.verdict == "fits":
        return Plan((), (), start)
    search = search_from(start, flowchart, safe_only=safe_only)
    if (asked := _as_asked(search)) is not None:
        return asked
    left = parts(search, flowchart, safe_only=safe_only or start.verdict == "tight")
    for part in left:
        plan = end_in(search, part) or shortened(search, part)
        if plan is not None:
            return _with_reasons(faster_with_room(plan, search, left), search, safe_only=safe_only)
    for point in _smallest_ends(search):
        verdict = point.state.verdict
        plan = _plan_to(search, search.walk, point.moves, Goal(verdict, needed=point.state.needed))
        if plan is not None:
            return _with_reasons(plan, search, safe_only=safe_only)
    return _with_reasons(Plan((), (), start), search, safe_only=safe_only)


def search_from(start: State, flowchart: Sequence[Tier], *, safe_only: bool) -> Search:
    """With the step that the YAML itself asks for made, unless it is not wanted."""
    rules = {rule.id: rule for tier in flowchart for rule in tier.rules}
    asked = ((FIRST, 0),) if FIRST in rules and not safe_only else ()
    if Walk(start, rules, rules).after(asked) is None:
        asked = ()
    plan_steps = sorted(rules, key=lambda rule: rule in LAST)
    walk = Walk(start, rules, rules, safe_only=safe_only, asked=asked)
    return Search(walk, {rule: rank for rank, rule in enumerate(plan_steps)})


def _as_asked(search: Search) -> Plan | None:
    """The step that the YAML asks for as the whole plan, where it is enough."""
    moves = search.walk.asked
    end = search.walk.after(moves)
    if not moves or end is None or end.verdict != "fits":
        return None
    return _plan_to(search, search.walk, moves, Goal("fits"))


def parts(search: Search, flowchart: Sequence[Tier], *, safe_only: bool) -> Iterator[Walk]:
    """The tiers, each with all rules before it: what trains the same, then the rest unless something is tight."""
    allowed: list[str] = []
    for tier in flowchart:
        allowed += [rule.id for rule in tier.rules]
        if len(allowed) == len(tier.rules) or any(rule.safe is not False for rule in tier.rules):
            yield with_rules(search.walk, allowed, safe_only=True)
        is_tight = any(point.state.verdict == "tight" for point in search.lean)
        if not safe_only and not is_tight and any(rule.safe is not True for rule in tier.rules):
            yield with_rules(search.walk, allowed, safe_only=False)


def end_in(search: Search, walk: Walk, start: Moves | None = None) -> Plan | None:
    """The best plan by the rules of a walk."""
    start = search.walk.asked if start is None else start
    family = [moves for moves in families(walk, start) if moves not in search.tried]
    search.tried.update(family)
    for point in fastest(walk, list(points(walk, family)))[:MOST_ENDS]:
        plan = _plan_to(search, walk, point.moves, Goal("fits", seconds=point.seconds))
        if plan is not None:
            return plan
    lean = leanest(walk, family, usable_of(walk))[:MOST_ENDS]
    for point in lean:
        if point.state.verdict == "fits":
            plan = _plan_to(search, walk, point.moves, Goal("fits", high=point.state.estimate.needed.high))
            if plan is not None:
                return plan
    search.lean.extend(lean)
    search.vain.append((walk, family))
    return None


def faster_with_room(plan: Plan, search: Search, left: Iterator[Walk]) -> Plan:
    """A plan near the card's limit, or one of a later tier that has room, trains the same and is faster."""
    if plan.safe and not is_roomy(plan.end) and plan.end.seconds is not None:
        for walk in left:
            other = end_in(search, walk) if walk.safe_only else None
            if other is not None and is_roomy(other.end) and EQUAL * (other.end.seconds or 0.0) < plan.end.seconds:
                return other
    return plan


def shortened(search: Search, walk: Walk) -> Plan | None:
    """The same with rows as long as they can be, where the rules may shorten them."""
    rule, lean = walk.rules.get(LENGTH), min(search.lean, key=lambda point: point.state.needed, default=None)
    if rule is None or lean is None or not rule.when(walk.start.run):
        return None
    for index in range(len(alternatives(rule, walk.start.run))):
        end = walk.after((*lean.moves, (LENGTH, index)))
        if end is not None and end.verdict == "fits":
            return end_in(search, walk, (*search.walk.asked, (LENGTH, index)))
        if end is not None:
            search.lean.append(Point((*lean.moves, (LENGTH, index)), end, 0.0))
    return None


def _plan_to(search: Search, walk: Walk, moves: Moves, goal: Goal) -> Plan | None:
    """The plan that moves of a walk lead to; None where the documents, or an error rule, do not have it."""
    steps = plan_steps(walk, search.order, moves, goal, kept=walk.asked)
    if steps is None:
        return None
    return Plan(steps, (), steps[-1].after if steps else walk.start)


def _smallest_ends(search: Search) -> Iterator[Point]:
    """What needs least memory of all that was searched in vain; the first is seldom struck out."""
    yield from ends_of(search.lean)
    yield from ends_of(point for walk, family in search.vain for point in leanest(walk, family, float("inf")))


def ends_of(found: Iterable[Point]) -> list[Point]:
    """Points, the smallest first."""
    return sorted(found, key=lambda point: (point.state.needed, len(point.moves)))


def _with_reasons(plan: Plan, search: Search, *, safe_only: bool) -> Plan:
    """The plan with the steps that were no help, and why; where it fits, only those that lack a host."""
    taken, hopeless = set(plan.names), plan.verdict == "does-not-fit"
    at = plan.end if hopeless else search.walk.start
    skipped: list[Skipped] = []
    for rule in search.walk.rules.values():
        if rule.id in taken or (plan.safe and not hopeless) or not rule.when(at.run):
            continue
        if not rule.is_safe(at.run) and (safe_only or not hopeless):
            continue
        found = best_step(rule, at)
        if isinstance(found, Skipped) and (hopeless or "host memory" in found.reason):
            skipped.append(found)
    return Plan(plan.steps, tuple(skipped), plan.end)
