"""The end of a plan in one part of the flowchart: by the fewest edits as fast as written, else the fastest."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import islice, takewhile

from advisor.engine.axes import families, weight_of_rules, without_batch
from advisor.engine.bases import End, Search
from advisor.engine.leanest import leanest
from advisor.engine.plan_steps import Goal, plan_steps
from advisor.engine.points import Moves, Walk
from advisor.engine.search import (
    EQUAL,
    LAST_RESORT,
    ROOM,
    WEIGHTS,
    WITHOUT_MASTERS,
    Point,
    fastest,
    needs_masters,
    no_slower,
    points,
    usable_of,
    weight_of_room,
)
from advisor.engine.states import Plan

MOST_ENDS = 24
"""So many of the points that are about as fast are tried as the end of a plan: one that adds an error is struck out."""
LONGER = 1.05
"""A repair may take so much longer than the run as written, and be about as fast."""


def end_in(search: Search, walk: Walk, more: Moves = ()) -> Plan | None:
    """The best plan by the rules of a walk, ``more`` made first."""
    first = (*walk.asked, *more)
    family = [moves for moves in families(walk, first) if (walk.asked, moves) not in search.tried]
    search.tried.update((walk.asked, moves) for moves in family)
    left: list[Moves] = list(points(walk, family))
    seconds = _allowed(walk, first)
    plan = (None if search.fastest else _as_fast(search, walk, left, seconds)) or _fastest(search, walk, left)
    if plan is not None and not search.fastest and _loses_masters(plan):
        plan = _without_masters(search, walk, left, seconds) or plan
    if plan is None:
        search.lean.append(cache(partial(_lean_ends, walk, family)))
        search.vain.append((walk, family))
    return plan


def _loses_masters(plan: Plan) -> bool:
    """Whether a plan ends without the masters that its rate needs."""
    return not WITHOUT_MASTERS.isdisjoint(plan.names) and needs_masters(plan.end.run)


def _without_masters(search: Search, walk: Walk, candidates: Sequence[Moves], seconds: float) -> Plan | None:
    """The plan of fewest edits among those that lose masters too, and take about as long as the run as written."""
    alike = [moves for moves in candidates if not WITHOUT_MASTERS.isdisjoint(rule for rule, _ in moves)]
    return _fewest_edits(search, walk, alike, seconds, weighed=LAST_RESORT)


def _allowed(walk: Walk, moves: Moves) -> float:
    """What a step of a repair may take: about as long as written, or with what comes first; 0 if none is modelled."""
    state = walk.after(moves)
    return LONGER * min(((each.seconds if each is not None else None) or 0.0) for each in (walk.start, state))


def _as_fast(search: Search, walk: Walk, candidates: Sequence[Moves], seconds: float) -> Plan | None:
    """The plan of fewest edits that takes about as long as the run as written; None where each takes longer.

    A repair is not there to make a run faster: that is a choice of its own. Another engine must be faster all the same.
    """
    usual, others = list[Moves](), list[Moves]()
    for moves in candidates:
        (usual if WEIGHTS.keys().isdisjoint(rule for rule, _ in moves) else others).append(moves)
    found = _fewest_edits(search, walk, usual, seconds)
    if found is None:
        return _fewest_edits(search, walk, others, seconds)
    least = min(seconds, (found.end.seconds or 0.0) / EQUAL**2)
    return _fewest_edits(search, walk, others, least, len(found.steps)) or found


def _fewest_edits(
    search: Search,
    walk: Walk,
    candidates: Sequence[Moves],
    seconds: float,
    most: float = float("inf"),
    *,
    weighed: float = 1.0,
) -> Plan | None:
    """The plan of fewest edits, at most so many, among those that take about so long.

    ``weighed``: what the search multiplies the time of these points with.
    """
    best: tuple[tuple[int, int, bool, float], Plan] | None = None
    within = weighed * seconds
    for point in islice(no_slower(walk, candidates, EQUAL * within) if seconds else (), MOST_ENDS):
        little = point.has_little_room
        if best is not None and best[0][:3] <= (point.changes, point.weight, little):
            break
        goal = Goal("fits", seconds=max(within, point.seconds), with_room=not little)
        plan = plan_to(search, walk, point.moves, goal)
        if plan is not None and len(plan.steps) <= most and (plan.end.seconds or 0.0) <= EQUAL * seconds:
            weight = weight_of_rules(plan.names) + weight_of_room(point.state.estimate)
            worth = (point.changes, weight, little, plan.end.seconds or 0.0)
            best = (worth, plan) if best is None or worth < best[0] else best
    return None if best is None else best[1]


def _fastest(search: Search, walk: Walk, candidates: Sequence[Moves]) -> Plan | None:
    """The plan to the fastest point; of those about as fast, the one of fewest edits."""
    left: list[Moves] = list(candidates)
    while left:
        tried: set[Moves] = set()
        for point in islice(ends_to_try(walk, left), MOST_ENDS):
            goal = Goal("fits", seconds=point.seconds, with_room=not point.has_little_room)
            plan = plan_to(search, walk, point.moves, goal)
            if plan is not None:
                return plan
            tried.add(without_batch(point.moves))
        if not tried:
            break
        left = [moves for moves in left if without_batch(moves) not in tried]
    return None


def _lean_ends(walk: Walk, family: Sequence[Moves]) -> list[End]:
    """Of a part that was searched in vain, what needs least memory."""
    return [(walk, point) for point in leanest(walk, family, usable_of(walk))[:MOST_ENDS]]


def ends_to_try(walk: Walk, candidates: Sequence[Moves]) -> Iterator[Point]:
    """The points to try as the end of a plan, about as fast; memory is spent to the last where nothing else fits.

    At the limit of the card room comes first, at its worth.
    """
    found = fastest(walk, candidates)
    first = next(found, None)
    if first is None:
        yield from fastest(walk, candidates, with_room=False)
        return
    if first.is_at_the_limit:
        roomier = fastest(walk, candidates, ROOM * first.seconds, with_room=True)
        yield from takewhile(lambda point: point.changes <= first.changes, roomier)
    yield first
    yield from found


def plan_to(search: Search, walk: Walk, moves: Moves, goal: Goal) -> Plan | None:
    """The plan that moves of a walk lead to; None where the documents, or an error rule, do not have it."""
    steps = plan_steps(walk, search.order, moves, goal, kept=walk.asked)
    if steps is None:
        return None
    return Plan(steps, steps[-1].after if steps else walk.start)
