"""The search within one tier: the fastest point that fits, by bisection over the micro batch."""

from bisect import insort
from collections.abc import Iterable, Iterator

from advisor.engine.axes import leaves, leaves_from_least, without_batch
from advisor.engine.points import Moves, Walk, at_batch
from advisor.engine.states import State
from advisor.engine.steps import host_suffices
from advisor.record import record

ROOMY = 0.95
"""Of what is usable: beyond it torch's allocator frees and asks again, which takes time."""
EQUAL = 1.05
"""Points whose times differ by less are as fast as each other; the model knows no better."""
MOST_LEAN = 8
"""So many points that need least memory are of use."""
ALIKE = 1.02
"""Points that are as fast and take as many edits, and whose times differ by less, are told apart by their memory."""
PER_STEP = 1.2
"""A stand-in for time where none is modelled: each step makes a run slower by so much."""
WEIGHTS = {"fsdp-2": 1.10, "half-masters": 1.05}
"""With ``EQUAL``: FSDP2 is taken where it is the only way, or 15 % faster."""


@record(eq=False)
class Point:
    """Moves from the start and where they lead. The micro batch is its own, put into ``state``."""

    moves: Moves
    state: State
    seconds: float

    def order(self, least: float) -> tuple[int, bool, int]:
        """Among points about as fast as the fastest: fewer edits come first, then the fastest, then less memory."""
        return len(self.moves), self.seconds > ALIKE * least, self.state.needed


def seconds_of(state: State, moves: Moves) -> float:
    """The time of a step as points are compared by it; where none is modelled, it grows with the steps taken.

    Another engine than the one named, or than DeepSpeed, must be so much faster.
    """
    found, weight = state.seconds, 1.0
    for move in moves:
        weight *= WEIGHTS.get(move[0], 1.0)
    return weight * (PER_STEP ** len(moves) if found is None else found)


def is_roomy(state: State) -> bool:
    """Whether the run fits and is not near the card's limit."""
    found = state.estimate
    return found.verdict == "fits" and found.needed.high <= ROOMY * found.usable


def points(walk: Walk, family: Iterable[Moves]) -> Iterator[Moves]:
    """The leaves of the families that leave room at their smallest."""
    for moves in family:
        if _smallest_of(walk, moves).at_least > usable_of(walk):
            continue
        if is_roomy(_smallest_of(walk, next(leaves_from_least(walk, moves)))):
            yield from leaves(walk, moves)


def usable_of(walk: Walk) -> int:
    """Bytes of a card that can be used."""
    hardware = walk.start.run.hardware
    assert hardware is not None, "a plan needs hardware"
    return hardware.usable


def _smallest_of(walk: Walk, moves: Moves) -> State:
    """A point with the smallest micro batch there is."""
    return at_batch(walk, moves, walk.sizes[0][0])


def fastest(walk: Walk, candidates: Iterable[Moves], below: float = float("inf")) -> list[Point]:
    """Points that fit with room to spare, the one to take first; empty where there is none faster than ``below``."""
    bounds = sorted((bound(walk, moves), moves) for moves in candidates)
    bounds = [(lowest, moves) for lowest, moves in bounds if lowest <= below]
    found: list[Point] = []
    least = float("inf")
    for lowest, moves in bounds:
        if lowest > EQUAL * least:
            break
        point = _largest_batch(walk, moves)
        if point is not None:
            found.append(point)
            least = min(least, point.seconds)
    near = [point for point in found if point.seconds <= EQUAL * least]
    far = [point for point in found if point.seconds > EQUAL * least]
    return sorted(near, key=lambda point: point.order(least)) + sorted(far, key=lambda point: point.seconds)


def bound(walk: Walk, moves: Moves) -> float:
    """The time with the largest micro batch, which no smaller one beats."""
    return seconds_of(at_batch(walk, moves, walk.sizes[-1][0]), moves)


def _largest_batch(walk: Walk, moves: Moves) -> Point | None:
    """The point with the largest micro batch that leaves room: memory only grows with it."""
    low, high = 0, len(walk.sizes) - 1
    if not _leaves_room(walk, moves, low):
        return None
    middle = high
    while low < high:
        if _leaves_room(walk, moves, middle):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    size, move = walk.sizes[low]
    state = at_batch(walk, moves, size)
    return Point((*without_batch(moves), *move), state, seconds_of(state, moves))


def _leaves_room(walk: Walk, moves: Moves, index: int) -> bool:
    """Whether a point with a micro batch of the walk is not near a limit."""
    state = at_batch(walk, moves, walk.sizes[index][0])
    return host_suffices(walk.start, state) and is_roomy(state)


def leanest(walk: Walk, family: Iterable[Moves], within: float) -> list[Point]:
    """The points that need least memory, all of it counted, and have a host; the least first, one of each family.

    Families are left out that cannot be among the first so many; of those that need more than ``within``, all but one.
    """
    least = sorted((_smallest_of(walk, moves).at_least, n, moves) for n, moves in enumerate(family))
    found: list[Point] = []
    for at_least, _, moves in least:
        rank = 0 if at_least > within else MOST_LEAN - 1
        if rank < len(found) and at_least > found[rank].state.needed:
            break
        point = _leanest_of(walk, moves)
        if point is not None:
            insort(found, point, key=lambda one: (one.state.needed, len(one.moves)))
    return found


def _leanest_of(walk: Walk, moves: Moves) -> Point | None:
    """The point of a family that needs least memory, all of it counted, and has a host."""
    for leaf in leaves_from_least(walk, moves):
        state = _smallest_of(walk, leaf)
        if host_suffices(walk.start, state) and not state.estimate.uncounted:
            return Point((*without_batch(leaf), *walk.sizes[0][1]), state, seconds_of(state, leaf))
    return None
