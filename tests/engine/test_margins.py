"""What decides between two points: how much faster, how many edits, how much memory; each margin from both sides."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from advisor.engine.bases import Search
from advisor.engine.choice import best_of
from advisor.engine.cost_text import differ
from advisor.engine.ends import end_in, ends_to_try
from advisor.engine.flowchart_status import compared
from advisor.engine.leanest import leanest
from advisor.engine.plan_steps import Goal, about, necessary
from advisor.engine.points import Moves, Paths, Reached
from advisor.engine.rule import Rule
from advisor.engine.search import EQUAL, fastest, no_slower, points, seconds_of
from advisor.engine.speedups import ORDER, sequence
from advisor.memory import estimate
from advisor.memory.ledger import Range
from advisor.record import replace
from tests.conftest import opened

FASTER: Moves = (("efficient-loading", 0), ("fused-loss", 0))
SHORTER: Moves = (("fused-loss", 0),)


def state(seconds: float | None = 100, needed: int = 50, verdict: str = "fits", high: int = 50) -> Any:
    """As much of a state as a comparison asks for: a card of 100 bytes, a host that nobody asks about."""
    estimate = SimpleNamespace(
        verdict=verdict, needed=Range(needed, high), usable=100, uncounted=(), has_little_room=high > 95
    )
    run = SimpleNamespace(micro_batch_size=1, hardware=None, adapter=None, config={}, sample_packing=True)
    return SimpleNamespace(
        seconds=seconds,
        shown_seconds=None,
        needed=needed,
        host_peak=0,
        at_least=needed,
        is_too_large=needed > 100,
        exceeds=lambda limit: needed > limit,
        verdict=verdict,
        estimate=estimate,
        run=run,
    )


class Walked:
    """A walk of which it is said where each set of moves leads, in whatever order they are made."""

    def __init__(self, ends: Mapping[Moves, Any], changes: Mapping[str, int] = {}):
        self.changes = changes
        self.ends = {frozenset(moves): end for moves, end in ends.items()}
        self.start = state()
        self.sizes = ((1, ()),)
        self.paths = Paths()
        self.rules: dict[str, Any] = {}

    def after(self, moves: Moves) -> Any:
        return self.ends.get(frozenset(moves))

    def judged(self, moves: Moves) -> Reached:
        return Reached(self.after(moves), sum(self.changes.get(rule, 0) for rule, _ in moves))


def first(ends: Mapping[Moves, Any], changes: Mapping[str, int] = {}) -> Moves:
    """The point that is taken first; ``changes``: of what is trained, by rule."""
    walk: Any = Walked(ends, changes)
    return next(fastest(walk, list(ends))).moves


@pytest.mark.parametrize(("seconds", "chosen"), [(104, SHORTER), (106, FASTER)])
def test_within_5_percent_of_the_fastest_fewer_edits_come_first(seconds: float, chosen: Moves):
    assert first({FASTER: state(100), SHORTER: state(seconds)}) == chosen


@pytest.mark.parametrize(("high", "chosen"), [(95, SHORTER), (96, FASTER)])
def test_within_5_percent_of_the_fastest_room_comes_before_fewer_edits(high: int, chosen: Moves):
    assert first({FASTER: state(104), SHORTER: state(100, high=high)}) == chosen


def quick(ends: Mapping[Moves, Any], seconds: float = 105) -> list[Moves]:
    """The points that take no more than ``seconds``, in their order."""
    walk: Any = Walked(ends)
    return [point.moves for point in no_slower(walk, list(ends), seconds)]


def test_among_ends_as_fast_as_written_the_fewest_edits_come_first_however_fast_others_are():
    assert quick({FASTER: state(50), SHORTER: state(104)})[0] == SHORTER
    assert quick({FASTER: state(50), SHORTER: state(106)}) == [FASTER]


def test_of_as_many_edits_the_fastest_comes_first():
    other: Moves = (("efficient-loading", 0),)
    assert quick({other: state(60), SHORTER: state(90)}) == [other, SHORTER]


@pytest.mark.parametrize(
    ("high", "more", "roomier"),
    [
        (95, "efficient-loading", False),
        (96, "efficient-loading", True),
        (96, "zero-2", False),
        (99, "zero-2", True),
    ],
)
def test_room_is_worth_a_small_edit_and_at_the_limit_one_that_rebuilds_the_run(high: int, more: str, roomier: bool):
    longer: Moves = (*SHORTER, (more, 0))
    assert quick({SHORTER: state(90, high=high), longer: state(100)})[0] == (longer if roomier else SHORTER)


def test_an_edit_that_rebuilds_the_run_is_less_than_two_small_ones_and_more_than_one():
    ends: list[Moves] = [SHORTER, (("zero-3", 0),), (("fused-loss", 0), ("efficient-loading", 0))]
    assert quick({moves: state(100) for moves in reversed(ends)}) == ends


def test_what_only_comes_along_is_no_edit_yet():
    along: Moves = (("smaller-eval-batch", 0), ("right-sized-buckets", 0), ("efficient-loading", 0))
    assert quick({along: state(60), SHORTER: state(90)})[0] == along


@pytest.mark.parametrize(("seconds", "micro_batch_size"), [(100, 2), (110, 4)])
def test_a_repair_grows_the_batch_only_where_it_is_too_slow_as_written(seconds: float, micro_batch_size: int):
    walk: Any = Walked({SHORTER: state()})
    walk.sizes = ((1, (("smaller-micro-batch", 0),)), (2, ()), (4, (("larger-micro-batch", 0),)))
    times = {1: 120, 2: seconds, 4: 90}
    walk.paths.batched.update({(SHORTER, size): state(time) for size, time in times.items()})
    (end,) = no_slower(walk, [SHORTER], 105)
    assert {moves: size for size, moves in walk.sizes}[end.moves[len(SHORTER) :]] == micro_batch_size


@pytest.mark.parametrize(("seconds", "chosen"), [(104, FASTER), (106, SHORTER)])
def test_room_is_worth_5_percent_of_the_time(seconds: float, chosen: Moves):
    assert first({FASTER: state(seconds), SHORTER: state(100, high=96)}) == chosen


def test_neither_room_nor_fewer_edits_are_worth_a_change_of_what_is_trained():
    ends = {FASTER: state(high=96), SHORTER: state()}
    assert first(ends) == SHORTER
    assert first(ends, {"fused-loss": 1}) == SHORTER
    assert first({FASTER: state(high=96), (("qlora", 0),): state()}, {"qlora": 1}) == FASTER


@pytest.mark.parametrize(("seconds", "size"), [(104, 1), (106, 2)])
def test_a_smaller_batch_leaves_room_where_it_is_about_as_fast(seconds: float, size: int):
    walk: Any = Walked({SHORTER: state()})
    walk.sizes = ((1, (("smaller-micro-batch", 0),)), (2, ()))
    walk.paths.batched.update({(SHORTER, 1): state(seconds), (SHORTER, 2): state(high=96)})
    end = next(fastest(walk, [SHORTER]))
    assert end.moves == ((*SHORTER, ("smaller-micro-batch", 0)) if size == 1 else SHORTER)


@pytest.mark.parametrize(
    ("high", "seconds", "ends"),
    [(97, 110, [SHORTER]), (99, 110, [FASTER, SHORTER]), (99, 120, [SHORTER])],
)
def test_at_the_limit_of_the_card_room_is_worth_15_percent(high: int, seconds: float, ends: list[Moves]):
    walk: Any = Walked({SHORTER: state(100, high=high), FASTER: state(seconds)})
    assert [point.moves for point in ends_to_try(walk, [SHORTER, FASTER])] == ends


def test_room_at_the_limit_is_not_worth_a_change_of_what_is_trained():
    qlora: Moves = (("qlora", 0),)
    walk: Any = Walked({SHORTER: state(100, high=99), qlora: state(110)}, {"qlora": 1})
    assert [point.moves for point in ends_to_try(walk, [SHORTER, qlora])] == [SHORTER]


def test_points_that_are_alike_come_in_turn():
    """The second takes a smaller batch, and so as many edits as the third, which comes in once the first is taken."""
    first_, second, third = (("a", 0),), (("b", 0),), (("c", 0), ("d", 0))
    walk: Any = Walked({moves: state() for moves in (first_, second, third)})
    smaller = ("smaller-micro-batch", 0)
    walk.sizes = ((1, (smaller,)), (2, ()))
    walk.paths.batched.update({(moves, size): state() for moves in (first_, second, third) for size in (1, 2)})
    walk.paths.batched[second, 2] = state(verdict="does-not-fit")
    found = fastest(walk, [first_, second, third])
    assert [point.moves for point in found] == [first_, (*second, smaller), third]


def test_what_saves_memory_alone_is_not_asked_for_less_where_more_does_not_fit():
    """With Liger's layers it does not fit, so nobody asks without; ZeRO-2 is another matter."""
    more, other = (("zero-1", 0), ("fused-kernels", 0)), (("zero-2", 0),)
    ends = {more: state(verdict="does-not-fit", high=101), more[:1]: state(), other: state()}
    for end in ends.values():
        end.estimate.on_gpu = end.verdict
    walk: Any = Walked(ends)
    walk.start.run.hardware = SimpleNamespace(usable=100)
    assert list(points(walk, list(ends))) == [other]


@pytest.mark.parametrize(("high", "chosen"), [(95, True), (96, False)])
@pytest.mark.parametrize("rule", ["no-checkpointing", "less-offload", "lower-zero-stage"])
def test_what_spends_memory_for_time_leaves_room(rule: str, high: int, chosen: bool):
    spent: Moves = ((rule, 0), *SHORTER)
    walk: Any = Walked({spent: state(50, high=high), SHORTER: state(100)})
    assert (next(fastest(walk, [spent, SHORTER])).moves == spent) == chosen
    assert next(fastest(walk, [spent, SHORTER], with_room=False)).moves == spent


def test_a_larger_batch_leaves_room():
    walk: Any = Walked({SHORTER: state()})
    walk.sizes = ((1, ()), (2, (("larger-micro-batch", 0),)))
    walk.paths.batched.update({(SHORTER, 1): state(100, high=96), (SHORTER, 2): state(50, high=96)})
    assert next(fastest(walk, [SHORTER])).moves == SHORTER


@pytest.mark.parametrize(("seconds", "chosen"), [(101.5, "b"), (102.5, "a")])
def test_within_2_percent_of_the_fastest_less_memory_comes_first(seconds: float, chosen: str):
    assert first({(("a", 0),): state(100, needed=50), (("b", 0),): state(seconds, needed=40)}) == ((chosen, 0),)


@pytest.mark.parametrize(
    ("rule", "seconds", "is_taken"),
    [("fsdp-2", 88, False), ("fsdp-2", 86, True), ("half-masters", 92, False), ("half-masters", 90, True)],
)
def test_an_edit_more_is_made_for_fsdp_2_at_15_percent_and_for_half_masters_at_10(
    rule: str, seconds: float, is_taken: bool
):
    other: Moves = ((rule, 0), ("fused-loss", 0))
    assert (first({SHORTER: state(100), other: state(seconds)}) == other) == is_taken


def test_where_no_time_is_modelled_a_step_more_is_never_as_fast():
    assert seconds_of(state(None), FASTER) > EQUAL * seconds_of(state(None), SHORTER) > EQUAL


@pytest.mark.parametrize(("high", "is_taken"), [(95, True), (100, False)])
def test_5_percent_of_a_card_are_left_free_where_it_is_for_speed_alone(high: int, is_taken: bool):
    walk: Any = Walked({SHORTER: state(high=high)})
    assert bool(list(fastest(walk, [SHORTER], with_room=True))) == is_taken
    assert list(fastest(walk, [SHORTER]))


@pytest.mark.parametrize(("high", "is_little"), [(95, False), (96, True), (101, False)])
def test_beyond_95_percent_little_room_is_left(high: int, is_little: bool, tmp_path: Path):
    known = estimate(opened(tmp_path, "base_model: Qwen/Qwen2.5-0.5B\n", "1x a100-80gb").run)
    assert known is not None
    assert replace(known, needed=Range(50, high), usable=100).has_little_room == is_little


def test_of_the_points_that_need_least_eight_are_looked_at():
    ends = {((f"rule-{n}", 0),): state(needed=n) for n in range(1, 13)}
    walk: Any = Walked(ends)
    assert [point.state.needed for point in leanest(walk, list(ends), within=100)] == [*range(1, 9)]


A, B = ("a", 0), ("b", 0)


def needed_of(ends: Mapping[Moves, Any], goal: Goal) -> Moves:
    """The moves of a and b that the end needs."""
    walk: Any = Walked(ends)
    return necessary(walk, {"a": 0, "b": 1}, (A, B), about(walk, (A, B), goal), ())


def test_of_two_steps_either_of_which_is_enough_the_first_of_the_flowchart_stays():
    assert needed_of({(A, B): state(), (A,): state(), (B,): state()}, Goal("fits")) == (A,)


@pytest.mark.parametrize(("seconds", "steps"), [(104, (A,)), (106, (A, B))])
def test_a_step_that_gains_less_than_5_percent_is_not_worth_an_edit(seconds: float, steps: Moves):
    """The goal itself lies as low as it can for the end."""
    ends = {(A, B): state(100), (A,): state(seconds), (B,): state(200)}
    assert needed_of(ends, Goal("fits", seconds=100 / EQUAL)) == steps


@pytest.mark.parametrize(
    ("end", "goal", "is_met"),
    [
        (state(104), Goal("fits", seconds=100), True),
        (state(106), Goal("fits", seconds=100), False),
        (state(high=96), Goal("fits", seconds=100), True),
        (state(high=96), Goal("fits", with_room=True), False),
        (state(high=95), Goal("fits", with_room=True), True),
        (state(needed=50), Goal("does-not-fit", needed=50), True),
        (state(needed=51), Goal("does-not-fit", needed=50), False),
        (state(verdict="tight"), Goal("fits"), False),
        (state(verdict="fits"), Goal("tight"), True),
    ],
)
def test_an_end_will_do_up_to_each_limit_of_its_goal(end: Any, goal: Goal, is_met: bool):
    assert goal.is_met(state(), end, ()) == is_met


@pytest.mark.parametrize(("seconds", "word"), [(100.5, "not needed"), (101.5, "slower here")])
def test_a_rung_is_slower_from_1_percent_on(seconds: float, word: str):
    assert compared(state(100), state(seconds)) == (word, "")


@pytest.mark.parametrize(("new", "said"), [(101.9, False), (102.2, True), (97.9, True)])
def test_a_change_of_2_percent_is_worth_a_word(new: float, said: bool):
    assert differ(100, new) == said


@pytest.mark.parametrize(("worth", "cards"), [(1.2, 1), (1.3, 2)])
def test_fewer_cards_are_shown_where_they_cost_no_more_than_a_quarter_more(worth: float, cards: int):
    rows: Any = [SimpleNamespace(worth=w, hardware=SimpleNamespace(world_size=n)) for n, w in ((2, 1.0), (1, worth))]
    wanted: Any = SimpleNamespace(worth=lambda row: row.worth)
    best: Any = best_of(wanted, rows)
    assert best.hardware.world_size == cards


def test_an_end_that_adds_an_error_is_struck_out_so_many_times(monkeypatch: pytest.MonkeyPatch):
    """Of a plan's best points 24, of those with which what fits is faster 12."""
    tried: list[str] = []
    best: Any = [
        SimpleNamespace(moves=(), seconds=1.0, has_little_room=False, is_at_the_limit=False) for _ in range(30)
    ]
    for module in ("advisor.engine.ends", "advisor.engine.speedups"):
        monkeypatch.setattr(f"{module}.fastest", lambda *_, **__: iter(best))
        monkeypatch.setattr(f"{module}.plan_steps", lambda *_, name=module, **__: tried.append(name))
        monkeypatch.setattr(f"{module}.families", lambda *_: [])
    monkeypatch.setattr("advisor.engine.ends.leanest", lambda *_: [])
    monkeypatch.setattr("advisor.engine.ends.points", lambda *_: [()])
    walk: Any = Walked({})
    walk.asked, walk.start.run.hardware, walk.start.shown_seconds = (), SimpleNamespace(usable=100, nodes=1), 100
    assert end_in(Search((walk,), {}), walk) is None
    assert sequence(walk.start, {name: cast("Rule", None) for name in ORDER}) == ()
    assert [tried.count(name) for name in dict.fromkeys(tried)] == [24, 12]
