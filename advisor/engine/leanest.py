"""Where nothing fits: the points that need least memory."""

from bisect import insort
from collections.abc import Iterable, Sequence

from advisor.engine.axes import leaves_from_least
from advisor.engine.points import Moves, Walk
from advisor.engine.search import Point, lean_leaves, point_of, smallest_of
from advisor.engine.steps import host_suffices

MOST_LEAN = 8
"""So many points that need least memory are of use."""


def leanest(walk: Walk, family: Iterable[Moves], within: float) -> list[Point]:
    """The points that need least memory, all of it counted, and have a host; the least first, one of each family.

    Families are left out that cannot be among the first so many; of those that need more than ``within``, all but one.
    """
    least = sorted((smallest_of(walk, moves).at_least, n, moves) for n, moves in enumerate(family))
    found: list[Point] = []
    for at_least, _, moves in least:
        limit = _limit_of(found, within)
        if at_least > limit:
            break
        point = _leanest_of(walk, moves, limit)
        if point is not None:
            insort(found, point, key=lambda one: (one.state.needed, len(one.moves)))
    return found


def _limit_of(found: Sequence[Point], within: float) -> float:
    """What a further point may need: no more than the last of so many; beyond ``within``, than the first."""
    last = found[MOST_LEAN - 1].state.needed if len(found) >= MOST_LEAN else float("inf")
    return min(last, max(within, found[0].state.needed)) if found else last


def _leanest_of(walk: Walk, moves: Moves, limit: float) -> Point | None:
    """The point of a family that needs least memory, no more than ``limit``, all of it counted, and has a host."""
    held = (leaf for leaf in leaves_from_least(walk, moves) if host_suffices(walk.start, smallest_of(walk, leaf)))
    first = next(held, None)
    ends = lean_leaves(walk, moves, first) if first is not None else ()
    found = [point_of(walk, leaf, 0) for leaf in ends if _is_counted(walk, leaf, limit)]
    return min(found, key=lambda one: one.state.needed, default=None)


def _is_counted(walk: Walk, leaf: Moves, limit: float) -> bool:
    """Whether a leaf at its smallest micro batch has a host and is within a limit, all of it counted."""
    state = smallest_of(walk, leaf)
    return not state.exceeds(limit) and host_suffices(walk.start, state) and not state.estimate.uncounted
