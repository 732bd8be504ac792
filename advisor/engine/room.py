"""How large a micro batch a run that fits has room for, and what would make room where little is left.

A larger global batch is the user's to choose.
"""

from collections.abc import Mapping

from advisor.documents import Set
from advisor.engine.answer import Room
from advisor.engine.max_value import MaxValue, outcome, searched
from advisor.engine.pace import SAME_TIME
from advisor.engine.regression import new_errors
from advisor.engine.rule import Rule
from advisor.engine.search import is_at_the_limit
from advisor.engine.states import State
from advisor.engine.steps import added_errors, alternatives, host_suffices, run_after
from advisor.memory import Estimate
from advisor.run import Run
from advisor.run.build import with_config

KEY = "micro_batch_size"
MAKES_ROOM = ("fused-loss", "right-sized-buckets", "smaller-eval-batch", "smaller-vllm-share", "flash-attention")
"""Rules that cost a run nothing."""
COSTS_TIME = {"smaller-micro-batch": 1.1, "offload-optimizer": 1.25}
"""Rules that make room where none does for free, and how many times as long a step may take with each."""
NOT_SLOWER = 1.01
WORTH = 0.02
"""Of the card: less room is not worth a sentence."""
FREE_WORTH = 0.05
"""Of the card: less that is free is not worth one where more than a little room is left."""
LEAST = 2
"""Times the present micro batch: less is not worth a sentence."""


def room_for(run: Run, *, instead: bool = False) -> Room | None:
    """The room of a run that fits; None for less than twice the micro batch. ``instead``: of a faster way with it."""
    before = State(run)
    most = searched(KEY, lambda size: _tried(before, size), least=LEAST * run.micro_batch_size)
    if most.value is None:
        return None
    whole = most.value - most.value % run.micro_batch_size  # generations in groups want a multiple
    for size in dict.fromkeys((most.value, whole)):
        after = State(with_micro_batch(run, size))
        if _is_larger_batch(run, after.run) and not new_errors(run, after.run, memory=False):
            return Room(size, after.run.global_batch_size, after.estimate.needed, _words(before, after, most, instead))
    return None


def more_room(run: Run, rules: Mapping[str, Rule], *, lead: str = "More room") -> str:
    """What makes room for the same training without a package or much time; empty where nothing does, or none lacks.

    What takes time is named where little room is left alone.
    """
    before = State(run)
    if not before.estimate.is_full:
        return ""
    names = (*MAKES_ROOM, *(COSTS_TIME if before.estimate.has_little_room else ()))
    for rule in (rules[name] for name in names if name in rules):
        slower = COSTS_TIME.get(rule.id, NOT_SLOWER)
        for edits in alternatives(rule, run) if rule.when(run) and rule.is_safe(run) else ():
            made = run_after(run, edits, rule)
            after = State(made) if made is not None and not rule.requires(run, made) else None
            if after is not None and _is_better(before, after, slower):
                cost = _time_a_token(before, after) if rule.id in COSTS_TIME else ""
                return f"{lead} with {rule.named(run, after.run)}, same training{cost}: {after.estimate.filled}."
    return ""


def _is_better(before: State, after: State, slower: float) -> bool:
    """Whether a run has room that one lacked, without an error, and takes no more than ``slower`` times as long."""
    slows = before.seconds is not None and (after.seconds or 0.0) > slower * before.seconds
    sound = host_suffices(before, after) and not added_errors(before, after)
    return after.verdict == "fits" and _has_more_room(before.estimate, after.estimate) and sound and not slows


def _has_more_room(before: Estimate, after: Estimate) -> bool:
    """Whether more than a little is left; of what was at the limit, whether it is no longer there."""
    less = before.needed.high / before.usable - after.needed.high / after.usable
    if not before.has_little_room:
        return less >= FREE_WORTH
    return not after.has_little_room or (is_at_the_limit(before) and less >= WORTH)


def with_micro_batch(run: Run, size: int) -> Run:
    """The run with another micro batch, its documents read again."""
    return with_config(run, [Set(KEY, size)])


def _tried(before: State, size: int) -> MaxValue:
    """What is needed with a micro batch, on the GPU and on the host; one that leaves little room is too large."""
    after = State(with_micro_batch(before.run, size))
    found = outcome(after.run)
    will_do = host_suffices(before, after) and not after.estimate.has_little_room
    return found if will_do else MaxValue(None, found.needed, "does-not-fit")


def _is_larger_batch(before: Run, after: Run) -> bool:
    """Whether the global batch has grown as the micro batch has: ``batch_size`` may keep it."""
    return after.global_batch_size * before.micro_batch_size == before.global_batch_size * after.micro_batch_size


def _words(before: State, after: State, most: MaxValue, instead: bool) -> str:
    """``Room for micro_batch_size 1 -> 4, global batch 128 -> 512: 65.6 of 78.0 GiB, -35% time a token.``"""
    old, new = before.run, after.run
    batch = f"{old.global_batch_size:,} -> {new.global_batch_size:,}"
    more = " or more" if most.bounded else ""
    lead, needs = "Or room" if instead else "Room", f"{after.estimate.filled}{_time_a_token(before, after)}"
    return f"{lead} for {KEY} {old.micro_batch_size} -> {new.micro_batch_size:,}{more}, global batch {batch}: {needs}."


def _time_a_token(before: State, after: State) -> str:
    """``, -35% time a token``, where that is priced and worth a word."""
    if before.shown_seconds is None or after.shown_seconds is None:
        return ""
    rows = after.run.global_batch_size / before.run.global_batch_size
    less = after.shown_seconds / rows / before.shown_seconds - 1
    return f", {less:+.0%} time a token" if abs(less) >= SAME_TIME else ""
