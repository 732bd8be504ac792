"""The search within one tier: points that fit and are fast enough, by bisection over the micro batch."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import floor, log

from advisor.engine.axes import OFFLOADED, SMALL, leaves, leaves_from_least, weight_of, without_batch
from advisor.engine.bar import BAR, REGROUPING
from advisor.engine.points import Move, Moves, Walk, at_batch
from advisor.engine.states import State
from advisor.engine.steps import host_suffices
from advisor.learning import rate_of
from advisor.memory import Estimate
from advisor.record import record
from advisor.run import Run

EQUAL = 1.05
"""Points whose times differ by less are as fast as each other; the model knows no better."""
ROOM = 1.15
"""An end at the limit of the card gives way to one with room that takes no more than this much of its time."""
LIMIT = 0.98
"""Of the card: an end that needs more is a matter of luck."""
ALIKE = 1.02
"""Points that are as fast and take as many edits, and whose times differ by less, are told apart by their memory."""
PER_STEP = 1.2
"""A stand-in for time where none is modelled: each step makes a run slower by so much."""
WEIGHTS = {"fsdp-2": 1.10, "half-masters": 1.05, **dict.fromkeys(REGROUPING, 1 / (BAR * EQUAL))}
"""With ``EQUAL``: FSDP2 is taken where it is the only way, or 15 % faster; what regroups the GPUs from its bar on."""
WITHOUT_MASTERS = frozenset({"fsdp-2", "half-masters", "without-deepspeed"})
LAST_RESORT = 1e3
"""Of what loses small updates of weights: taken where it is the only way."""
ONLY_WAYS = {"context-parallel": 1e2, "tiled-mlp": 1e2}
"""Likewise of what takes GPUs from the batch, or needs a package and computes the MLP again, by rule."""
SPENDS = frozenset(
    {
        "less-offload",
        "no-activation-offloading",
        "plain-ddp",
        "lower-zero-stage",
        "fsdp-no-reshard",
        "no-checkpointing",
        "larger-micro-batch",
    }
)
"""Rules that pay for time with memory: they leave room, unless nothing else of a tier fits."""
SAVING = frozenset(
    {
        "fused-kernels",
        "right-sized-buckets",
        "fsdp-reshard",
        "sync-each-batch",
    }
)
"""Rules that do nothing but save memory: without them nothing fits the GPU that does not with them."""
LOW_RATE = 1e-4
"""Below it updates of a full fine-tune are smaller than a bf16 step of most weights (arXiv:2010.06192, 3)."""

Order = tuple[int, int, bool, int, int, int]


@record(eq=False)
class Point:
    """Moves from the start and where they lead. The micro batch is its own, put into ``state``."""

    moves: Moves
    state: State
    seconds: float
    changes: int = 0
    """How many of its moves change what is trained."""

    @property
    def has_little_room(self) -> bool:
        """Whether it fits and next to nothing of the card is left."""
        return self.state.estimate.has_little_room

    @property
    def is_at_the_limit(self) -> bool:
        """Whether it fits and hardly anything of the card is left."""
        return is_at_the_limit(self.state.estimate)

    def order(self, least: float) -> Order:
        """Among points that are fast enough: the same training comes first, then fewer edits, then room, then time."""
        state, slower = self.state, floor(log(self.seconds / least) / log(ALIKE))
        return self.changes, self.weight, self.has_little_room, slower, state.host_peak, state.needed

    @property
    def weight(self) -> int:
        """What its edits weigh, and the room that it lacks."""
        return weight_of(self.moves) + weight_of_room(self.state.estimate)


def weight_of_room(estimate: Estimate) -> int:
    """What little room weighs: as much as a small edit, and as two where it is a matter of luck."""
    return SMALL * (estimate.has_little_room + is_at_the_limit(estimate))


def is_at_the_limit(estimate: Estimate) -> bool:
    """Whether a run fits and hardly anything of the card is left."""
    return estimate.has_little_room and estimate.needed.high > LIMIT * estimate.usable


def seconds_of(state: State, moves: Moves) -> float:
    """The time of a step as points are compared by it; where none is modelled, it grows with the steps taken.

    Another engine than the one named, or than DeepSpeed, must be so much faster.
    """
    found, weight = state.seconds, 1.0
    for move in moves:
        weight *= WEIGHTS.get(move[0], 1.0) * ONLY_WAYS.get(move[0], 1.0)
        weight *= LAST_RESORT if move[0] in WITHOUT_MASTERS and needs_masters(state.run) else 1.0
    return weight * (PER_STEP ** len(moves) if found is None else found)


def needs_masters(run: Run) -> bool:
    """Whether all weights are trained at a rate whose updates bf16 weights without fp32 masters lose."""
    rate = rate_of(run)
    return run.adapter is None and rate is not None and rate < LOW_RATE


def points(walk: Walk, family: Iterable[Moves]) -> Iterator[Moves]:
    """The leaves of the families that fit at their smallest; less of what saves memory fits a GPU no better."""
    vain: list[frozenset[Move]] = []
    for moves in sorted(family, key=len, reverse=True):
        made = frozenset(moves)
        if any(made <= more and SAVING.issuperset(rule for rule, _ in more - made) for more in vain):
            continue
        may_fit = smallest_of(walk, moves).at_least <= usable_of(walk)
        tried: list[Estimate] = []
        for leaf in lean_leaves(walk, moves, next(leaves_from_least(walk, moves))) if may_fit else ():
            state = smallest_of(walk, leaf)
            if state.is_too_large:
                continue
            tried.append(state.estimate)
            if state.verdict == "fits":
                yield from leaves(walk, moves)
                break
        if all(estimate.on_gpu != "fits" for estimate in tried):
            vain.append(made)


def lean_leaves(walk: Walk, family: Moves, leaf: Moves) -> Iterator[Moves]:
    """A leaf of a family, then the same with its checkpoints on the GPU, where that may do better."""
    yield leaf
    if leaf != family and leaf[-1][0] == OFFLOADED and _may_do_better_without(smallest_of(walk, leaf)):
        yield leaf[:-1]


def _may_do_better_without(state: State) -> bool:
    """Whether a point that offloads activations may do better without: it needs host memory, and its hooks keep more.

    That is what ZeRO-3 has gathered for adapters, and what 8-bit linears read.
    """
    run = state.run
    if run.quantization == "int8" or (run.zero_stage == 3 and run.adapter is not None):
        return True
    return not state.is_too_large and state.estimate.on_host != "fits"


def usable_of(walk: Walk) -> int:
    """Bytes of a card that can be used."""
    hardware = walk.start.run.hardware
    assert hardware is not None, "a plan needs hardware"
    return hardware.usable


def smallest_of(walk: Walk, moves: Moves) -> State:
    """A point with the smallest micro batch there is."""
    return at_batch(walk, moves, walk.sizes[0][0])


def fastest(
    walk: Walk, candidates: Iterable[Moves], below: float = float("inf"), *, with_room: bool | None = None
) -> Iterator[Point]:
    """Points that fit and are about as fast as the fastest, the one to take first; each worked out once it is its turn.

    None is slower than ``below``. ``with_room``: whether they must leave some of the card free; if not said, those must
    that spend memory for time.
    """
    bounds = sorted((lowest, moves) for moves in candidates if (lowest := bound(walk, moves)) <= below)
    least = _least(walk, bounds, below, with_room=with_room)
    within = min(EQUAL * least, below)
    near = [moves for lowest, moves in bounds if lowest <= within < float("inf")]
    yield from _by_edits(walk, near, lambda moves: _ends_of(walk, moves, within, with_room=with_room), least)


def no_slower(walk: Walk, candidates: Iterable[Moves], seconds: float) -> Iterator[Point]:
    """Points that fit in no more than ``seconds``, the fewest edits first; each worked out once it is its turn.

    The micro batch is no larger than it is written, unless that is too slow.
    """
    near = [moves for moves in candidates if bound(walk, moves) <= seconds]
    yield from _by_edits(walk, near, lambda moves: _ends_of(walk, moves, seconds, as_written=True), seconds)


def _by_edits(
    walk: Walk, near: Iterable[Moves], ends_of: Callable[[Moves], Iterable[Point]], least: float
) -> Iterator[Point]:
    """The points that leaves end in, by their order next to the time ``least``."""
    waiting: list[tuple[Order, int, Point]] = []
    turn = count()
    for (changes, edits), moves in sorted((_fewest(walk, moves), moves) for moves in near):
        while waiting and waiting[0][0] < (changes, edits):
            yield heappop(waiting)[-1]
        for point in ends_of(moves):
            heappush(waiting, (point.order(least), next(turn), point))
    yield from (point for *_, point in sorted(waiting))


def _least(walk: Walk, bounds: Iterable[tuple[float, Moves]], below: float, *, with_room: bool | None) -> float:
    """The time of the fastest point that fits; without end where there is none."""
    least = float("inf")
    for lowest, moves in bounds:
        if lowest >= least:
            break
        point = _largest_batch(walk, moves, min(least, below), len(walk.sizes) - 1, with_room=with_room)
        least = least if point is None else min(least, point.seconds)
    return least


def _fewest(walk: Walk, moves: Moves) -> tuple[int, int]:
    """Below what no point of a leaf comes: its changes of what is trained, and the weight of its other edits."""
    reached = walk.judged(moves)
    assert reached is not None, "a leaf leads somewhere"
    return reached.changes, weight_of(without_batch(moves))


def _ends_of(
    walk: Walk, moves: Moves, within: float, *, with_room: bool | None = None, as_written: bool = False
) -> Iterator[Point]:
    """The fastest point of a leaf, and if that leaves little room the fastest that does not."""
    most = _written_batch(walk) if as_written else len(walk.sizes) - 1
    if as_written and _seconds_at(walk, moves, most) > within:
        most = len(walk.sizes) - 1
    point = _largest_batch(walk, moves, within, most, with_room=with_room)
    if point is None:
        return
    yield point
    roomier = _largest_batch(walk, moves, within, most, with_room=True) if point.has_little_room else None
    if roomier is not None:
        yield roomier


def bound(walk: Walk, moves: Moves) -> float:
    """The time with the largest micro batch, which no smaller one beats."""
    return seconds_of(at_batch(walk, moves, walk.sizes[-1][0]), moves)


def _written_batch(walk: Walk) -> int:
    """The index of the micro batch as written."""
    return next(index for index, (_, move) in enumerate(walk.sizes) if not move)


def _largest_batch(walk: Walk, moves: Moves, within: float, high: int, *, with_room: bool | None) -> Point | None:
    """The point with the largest micro batch, up to ``high``, that fits and is no slower.

    Memory only grows with the micro batch, time only falls.
    """
    fast = range(0 if within == float("inf") else high)
    low = bisect_left(fast, True, key=lambda index: _seconds_at(walk, moves, index) <= within)
    if not _fits(walk, moves, low, with_room=with_room):
        return None
    middle = high
    while low < high:
        if _fits(walk, moves, middle, with_room=with_room):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return point_of(walk, moves, low)


def _seconds_at(walk: Walk, moves: Moves, index: int) -> float:
    """The time of a leaf with one of the micro batches of the walk."""
    return seconds_of(at_batch(walk, moves, walk.sizes[index][0]), moves)


def point_of(walk: Walk, moves: Moves, index: int) -> Point:
    """A leaf with one of the micro batches of the walk."""
    size, move = walk.sizes[index]
    state, reached = at_batch(walk, moves, size), walk.judged(moves)
    assert reached is not None, "a leaf leads somewhere"
    return Point((*without_batch(moves), *move), state, seconds_of(state, moves), reached.changes)


def _fits(walk: Walk, moves: Moves, index: int, *, with_room: bool | None) -> bool:
    """Whether a point with a micro batch of the walk fits, and has a host."""
    size, move = walk.sizes[index]
    state = at_batch(walk, moves, size)
    if state.is_too_large or not host_suffices(walk.start, state) or state.verdict != "fits":
        return False
    if with_room is None:
        with_room = any(rule in SPENDS for rule, _ in (*moves, *move))
    return not (with_room and state.estimate.has_little_room)
