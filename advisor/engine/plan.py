"""The plan: the first tier of the flowchart in which the run fits, and there the fewest edits, told step by step."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from advisor.engine.axes import HALF, LENGTH
from advisor.engine.bases import End, Search, Tier, search_from, smallest_first
from advisor.engine.ends import end_in, plan_to
from advisor.engine.leanest import leanest
from advisor.engine.plan_steps import Goal
from advisor.engine.points import Move, Moves, Paths, Walk, with_rules
from advisor.engine.search import (
    EQUAL,
    ONLY_WAYS,
    WITHOUT_MASTERS,
    Point,
    is_at_the_limit,
    needs_masters,
)
from advisor.engine.states import Plan, State
from advisor.engine.steps import alternatives, run_after
from advisor.record import replace


def plan_fit(
    start: State,
    flowchart: Sequence[Tier],
    *,
    safe_only: bool = False,
    fastest: bool = False,
    walked: dict[Moves, Paths] | None = None,
) -> Plan:
    """The plan for a run that does not fit. One that is tight as written gets safe steps alone.

    ``fastest``: with the edits that make it faster, not the fewest that keep it as fast as written.
    ``walked``: what other plans from the same start have worked out, by what they begin with; it grows.
    """
    if start.verdict == "fits":
        return Plan((), start)
    safe_only = safe_only or start.verdict == "tight"
    search = search_from(start, flowchart, {} if walked is None else walked, safe_only=safe_only, fastest=fastest)
    plan = _as_asked(search, flowchart)
    if plan is not None:
        return plan
    plan = _first_that_fits(search, flowchart, safe_only=safe_only)
    return (_instead(search, flowchart, plan) if plan is not None else None) or plan or _smallest(search)


def _as_asked(search: Search, flowchart: Sequence[Tier]) -> Plan | None:
    """What comes first as the whole plan, as much of it as is enough; with more edits where it is slower without."""
    all_of_it = search.bases[0].asked
    parts_of_it = [walk for walk in search.bases if walk.asked and walk.asked == all_of_it[: len(walk.asked)]]
    for walk in sorted(parts_of_it, key=lambda walk: len(walk.asked)):
        end = walk.after(walk.asked)
        if end is not None and end.verdict == "fits":
            plan = plan_to(search, walk, walk.asked, Goal("fits"))
            return plan and _faster_with(search, walk, flowchart, plan)
    return None


def _faster_with(search: Search, walk: Walk, flowchart: Sequence[Tier], plan: Plan) -> Plan:
    """A plan that is slower than the run as written, with steps of the first tier on top where these make it faster."""
    seconds = search.start.seconds
    if not search.fastest and (seconds is None or _seconds(plan) <= EQUAL * seconds):
        return plan
    best = end_in(search, next(parts((walk,), flowchart[:1], safe_only=True)))
    return best if best is not None and EQUAL * _seconds(best) < _seconds(plan) else plan


def _first_that_fits(search: Search, flowchart: Sequence[Tier], *, safe_only: bool) -> Plan | None:
    """The best plan of the first tier that has one; rows are cut where nothing is even near the limit."""
    for count in range(1, len(flowchart) + 1):
        tiers = flowchart[:count]
        for part in parts(search.bases, tiers, safe_only=safe_only):
            plan = end_in(search, part)
            if plan is not None:
                return _with_package(search, part, plan) or plan
        cuts = not safe_only and any(rule.id == LENGTH for rule in tiers[-1].rules)
        plan = _shortened(search, tiers) if cuts else None
        if plan is not None:
            return plan
    return None


def _with_package(search: Search, part: Walk, plan: Plan) -> Plan | None:
    """In place of a plan at the limit of the card: one with a package that leaves room, as short and fast."""
    if part.packages or not is_at_the_limit(plan.end.estimate) or not _knows_packages(part, part.rules):
        return None
    roomier = end_in(search, replace(part, packages=True))
    if roomier is None or roomier.end.estimate.has_little_room or len(roomier.steps) > len(plan.steps):
        return None
    return roomier if _seconds(roomier) <= EQUAL * _seconds(plan) else None


def _instead(search: Search, flowchart: Sequence[Tier], plan: Plan) -> Plan | None:
    """In place of a plan that needs what is taken last: one of any tier that trains the same without it, as fast.

    That is what loses the masters that a rate needs, or shares rows between GPUs: for that, a package may come.
    """
    lost = WITHOUT_MASTERS if needs_masters(plan.end.run) else frozenset[str]()
    avoided = lost | ONLY_WAYS.keys()
    if avoided.isdisjoint(plan.names):
        return None
    rules = [rule.id for tier in flowchart for rule in tier.rules if rule.id not in avoided]
    slowest = EQUAL * max(_seconds(plan), search.start.seconds or 0.0)
    may_need = not ONLY_WAYS.keys().isdisjoint(plan.names) and _knows_packages(search.bases[0], rules)
    for packages in (False, True) if may_need else (False,):
        kept = end_in(search, with_rules(search.bases[0], rules, safe_only=True, packages=packages))
        if kept is not None and _seconds(kept) <= slowest:
            return kept
    return None


def _seconds(plan: Plan) -> float:
    """A step at the end of a plan; endless where it has no time."""
    return plan.end.seconds or float("inf")


def parts(bases: Iterable[Walk], tiers: Sequence[Tier], *, safe_only: bool) -> Iterator[Walk]:
    """The last tier with all rules before it: what trains the same, then the rest; each first without packages.

    Half precision with fp32 masters comes without what would give them up again.
    """
    rules = [rule.id for tier in tiers for rule in tier.rules]
    last = tiers[-1].rules
    same = len(tiers) == 1 or any(rule.safe is not False for rule in last)
    changes = not safe_only and any(rule.safe is not True for rule in last)
    for base in bases:
        allowed = [rule for rule in rules if rule not in WITHOUT_MASTERS or (HALF, 0) not in base.asked]
        packages = (False, True) if _knows_packages(base, allowed) else (False,)
        for kind in [True] * same + [False] * changes:
            yield from (with_rules(base, allowed, safe_only=kind, packages=more) for more in packages)


def _knows_packages(walk: Walk, allowed: Iterable[str]) -> bool:
    """Whether a rule has an alternative that needs a package."""
    run = walk.start.run
    rules = (walk.known[rule] for rule in allowed if walk.known[rule].may_require)
    return any(
        rule.requires(run, after)
        for rule in rules
        if rule.when(run)
        for edits in alternatives(rule, run)
        if (after := run_after(run, edits, rule)) is not None
    )


def _shortened(search: Search, tiers: Sequence[Tier]) -> Plan | None:
    """Rows as long as they can be, and with that length the tiers from the first: what else is needed then."""
    ends = search.ends
    if not ends or any(point.state.verdict == "tight" for _, point in ends):
        return None
    at, lean = ends[0]
    walk = with_rules(at, at.known, safe_only=False, packages=True)
    rule = walk.known[LENGTH]
    for index in range(len(alternatives(rule, walk.start.run)) if rule.when(walk.start.run) else 0):
        moves = (*lean.moves, (LENGTH, index))
        end = walk.after(moves)
        if end is not None and end.verdict == "fits":
            return _with_length(search, tiers, (LENGTH, index))
        if end is not None:
            search.lean.append(partial(list[End], [(walk, Point(moves, end, 0.0))]))
    return None


def _with_length(search: Search, tiers: Sequence[Tier], cut: Move) -> Plan | None:
    """The best plan of the first tier that has one with a length that is decided on."""
    bases = tuple(replace(walk, settled=frozenset({cut}), paths=Paths()) for walk in search.bases)
    again = Search(bases, search.order, fastest=search.fastest)
    for count in range(1, len(tiers) + 1):
        for part in parts(bases, tiers[:count], safe_only=False):
            plan = end_in(again, part, (cut,))
            if plan is not None:
                return plan
    return None


def _smallest(search: Search) -> Plan:
    """The plan to the least tight end of the first part that has one, else to what needs least memory of all."""
    for walk, point in _smallest_ends(search):
        goal = Goal(point.state.verdict, needed=point.state.needed)
        plan = plan_to(search, walk, point.moves, goal)
        if plan is not None:
            return plan
    return Plan((), search.start)


def _smallest_ends(search: Search) -> Iterator[End]:
    """What was searched in vain; the first is seldom struck out."""
    for ends in search.lean:
        yield from (end for end in ends() if end[1].state.verdict == "tight")
    yield from search.ends
    yield from smallest_first(
        (walk, point) for walk, family in search.vain for point in leanest(walk, family, float("inf"))
    )
