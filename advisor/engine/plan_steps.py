"""A point told as the steps of the flowchart, each of them necessary."""

from collections.abc import Mapping

from advisor.engine.bar import REGROUPING, clears_the_bar
from advisor.engine.points import Move, Moves, Walk
from advisor.engine.search import EQUAL, seconds_of
from advisor.engine.states import State, Step
from advisor.engine.steps import added_errors, alternatives, host_suffices
from advisor.memory import Verdict
from advisor.record import record, replace


@record
class Goal:
    """What an end must reach: a verdict, a time where points are compared by it, and bytes where nothing fits."""

    verdict: Verdict
    seconds: float | None = None
    needed: int | None = None
    with_room: bool = False
    """Whether some of the card must be left free."""

    def is_met(self, start: State, end: State, moves: Moves) -> bool:
        """Whether a state will do as the end of a plan."""
        if self.seconds is not None and seconds_of(end, moves) > EQUAL * self.seconds:
            return False  # asked first: it takes less than the memory
        if end.verdict != self.verdict and not (self.verdict == "does-not-fit" or end.verdict == "fits"):
            return False
        if self.needed is not None and end.needed > self.needed:
            return False
        if self.with_room and end.estimate.has_little_room:
            return False
        return host_suffices(start, end)


def plan_steps(
    walk: Walk, order: Mapping[str, int], moves: Moves, goal: Goal, kept: Moves = ()
) -> tuple[Step, ...] | None:
    """The steps of the flowchart that lead to the goal; None where they do not, or add an error.

    ``kept`` come first, needed or not.
    """
    others = tuple(move for move in moves if move not in kept)
    moves = in_order(walk, order, others, kept)
    if not does(walk, moves, goal) or _adds_errors(walk, moves):
        return None
    moves = necessary(walk, order, moves, goal, kept)
    gentler = _milder(walk, order, moves, _as_fast_as(walk, moves, goal), kept)
    moves = moves if gentler == moves else necessary(walk, order, gentler, goal, kept)
    moves = necessary(walk, order, moves, about(walk, moves, goal), kept)
    return None if _adds_errors(walk, moves) else steps_of(walk, moves)


def about(walk: Walk, moves: Moves, goal: Goal) -> Goal:
    """The goal less what is as fast: a step that makes its end faster by no more than that is not worth an edit."""
    end = walk.after(moves)
    if goal.seconds is None or end is None:
        return goal
    return replace(goal, seconds=max(goal.seconds, seconds_of(end, moves)))


def _as_fast_as(walk: Walk, moves: Moves, goal: Goal) -> Goal:
    """The goal, and no slower than where moves lead: a milder alternative is no fewer edits."""
    end = walk.after(moves)
    if goal.seconds is None or end is None:
        return goal
    return replace(goal, seconds=min(goal.seconds, seconds_of(end, moves)))


def _adds_errors(walk: Walk, moves: Moves) -> bool:
    """Whether an error rule speaks at the end that did not at the start."""
    end = walk.after(moves)
    return end is not None and bool(added_errors(walk.start, end))


def does(walk: Walk, moves: Moves, goal: Goal) -> bool:
    """Whether these moves lead to the goal."""
    end = walk.after(moves)
    return end is not None and goal.is_met(walk.start, end, moves)


def in_order(walk: Walk, order: Mapping[str, int], moves: Moves, kept: Moves) -> Moves:
    """The moves as the flowchart tells them, each as soon as it applies; what never does is left out."""
    left = sorted(set(moves) - set(kept), key=lambda move: order[move[0]])
    made = kept
    while left:
        following = next((move for move in left if walk.after((*made, move)) is not None), None)
        if following is None:
            break
        made = (*made, following)
        left.remove(following)
    return made


def necessary(walk: Walk, order: Mapping[str, int], moves: Moves, goal: Goal, kept: Moves) -> Moves:
    """Without the moves that the end does not need, the last of the flowchart first."""
    for index in reversed(range(len(kept), len(moves))):
        rest = in_order(walk, order, moves[:index] + moves[index + 1 :], kept)
        if does(walk, rest, goal) or (moves[index][0] in REGROUPING and not _is_worth(walk, rest, moves)):
            return necessary(walk, order, rest, goal, kept)
    return moves


def _is_worth(walk: Walk, rest: Moves, moves: Moves) -> bool:
    """Whether moves that regroup the GPUs clear their bar over the rest, which needs no more memory."""
    without, end = walk.after(rest), walk.after(moves)
    return without is None or end is None or clears_the_bar(without.run, end.run)


def _milder(walk: Walk, order: Mapping[str, int], moves: Moves, goal: Goal, kept: Moves) -> Moves:
    """Where a rule has alternatives, the mildest with which the end is as good."""
    for index, (rule, chosen) in enumerate(moves):
        for alternative in range(0 if (rule, chosen) in kept else chosen):
            rest = in_order(walk, order, (*moves[:index], (rule, alternative), *moves[index + 1 :]), kept)
            if does(walk, rest, goal):
                return _milder(walk, order, rest, goal, kept)
    return moves


def steps_of(walk: Walk, moves: Moves) -> tuple[Step, ...]:
    """Each move as a step, from where the one before ended."""
    return tuple(_step_of(walk, moves[:count], moves[count]) for count in range(len(moves)))


def _step_of(walk: Walk, before: Moves, move: Move) -> Step:
    """One move as a step."""
    start, end = walk.after(before), walk.after((*before, move))
    assert start is not None, "a move is made from somewhere"
    assert end is not None, "it leads somewhere"
    rule = walk.known[move[0]]
    return Step(rule, alternatives(rule, start.run)[move[1]], start, end)
