"""What spares a search its work says what the whole work would have said."""

import random
from collections.abc import Iterator

import pytest

from advisor.engine.axes import OFFLOADED, families, leaves_from_least
from advisor.engine.options import Options, tiers_of
from advisor.engine.plan_memo import PlanMemo
from advisor.engine.points import Moves, Walk, at_batch
from advisor.engine.search import points
from advisor.engine.states import State
from advisor.memory import exceeds, lower_bound
from advisor.run import Run
from tests.benchmarks.plans import opened, random_run

INT8 = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "adapter": "lora",
    "load_in_8bit": True,
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_linear": True,
    "sequence_len": 8192,
    "micro_batch_size": 4,
    "bf16": True,
    "learning_rate": 2e-4,
}
ODD = (
    ({**INT8, "loss_watchdog_threshold": 5}, "1x rtx-4090"),
    ({**INT8, "load_in_8bit": False, "base_model": "Qwen/Qwen3-30B-A3B"}, "4x a100-40gb"),
    ({**INT8, "load_in_8bit": False, "adapter": "", "rl": "dpo"}, "2x a100-80gb"),
    ({**INT8, "load_in_8bit": False, "adapter": "", "test_datasets": [{"path": "a/b"}]}, "2x a100-80gb"),
)


def runs(count: int) -> Iterator[Run]:
    """Runs that do not fit: of every kind that a grid draws, and some that it does not."""
    for config, gpus in ODD:
        yield opened(config, None, gpus)
    dice = random.Random(3)
    while count:
        config, gpus = random_run(dice)
        run = opened(config, None, gpus)
        if State(run).verdict == "does-not-fit":
            count -= 1
            yield run


def walk_of(run: Run) -> Walk:
    """All rules of the flowchart."""
    rules = {rule.id: rule for tier in tiers_of(Options()) for rule in tier.rules}
    return Walk(State(run), rules, rules, packages=True)


def drawn(count: int, few: int) -> Iterator[tuple[Walk, Moves]]:
    """A few families of each run."""
    dice = random.Random(5)
    for run in runs(count):
        walk = walk_of(run)
        found = families(walk, ())
        yield from ((walk, moves) for moves in dice.sample(found, min(few, len(found))))


def smallest(walk: Walk, moves: Moves) -> State:
    """With the smallest micro batch."""
    return at_batch(walk, moves, walk.sizes[0][0])


def test_no_leaf_of_a_family_needs_less_than_its_lower_bound():
    compared = 0
    for walk, family in drawn(12, 6):
        bound = lower_bound(smallest(walk, family).run)
        for leaf in leaves_from_least(walk, family):
            assert bound <= smallest(walk, leaf).estimate.allocated_peak, (family, leaf)
            compared += 1
    assert compared > 100


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_run_exceeds_what_is_less_than_it_needs(beyond: int):
    for walk, family in drawn(6, 4):
        state = smallest(walk, family)
        assert exceeds(state.run, state.needed + beyond) == (beyond < 0)


def test_layer_inputs_on_the_host_need_no_more_but_of_8_bits_and_of_adapters_under_zero_3():
    compared = 0
    for walk, family in drawn(12, 6):
        first = next(leaves_from_least(walk, family))
        run = smallest(walk, family).run
        if first == family or first[-1][0] != OFFLOADED or run.quantization == "int8":
            continue
        if run.zero_stage == 3 and run.adapter is not None:
            continue
        compared += 1
        assert smallest(walk, first).needed <= smallest(walk, first[:-1]).needed, first
    assert compared > 20


def test_plans_of_one_run_share_what_they_worked_out_and_are_the_same():
    flowchart = tiers_of(Options())
    for run in runs(4):
        shared, memos = PlanMemo(), (PlanMemo(), PlanMemo())
        for safe_only, alone in zip((True, False), memos, strict=True):
            plan, own = (memo.plan(run, flowchart, safe_only=safe_only) for memo in (shared, alone))
            assert (plan.names, plan.verdict, plan.end.needed) == (own.names, own.verdict, own.end.needed)
        reached = [sum(len(one.reached) for one in memo.walked[run][1].values()) for memo in (shared, *memos)]
        assert max(reached[1:]) <= reached[0] < sum(reached[1:])


def test_no_family_is_passed_by_that_fits_however_little_memory_the_host_has():
    dice, compared = random.Random(23), 0
    while compared < 4:
        config, gpus = random_run(dice)
        run = opened(config, None, f"{gpus.split(' host=')[0]} host={dice.choice((4, 16))}GiB")
        if State(run).verdict != "does-not-fit":
            continue
        compared += 1
        walk = walk_of(run)
        found = families(walk, ())
        fitting = [
            family
            for family in found
            if any(smallest(walk, leaf).verdict == "fits" for leaf in leaves_from_least(walk, family))
        ]
        kept = set(points(walk, found))
        assert all(kept.intersection(leaves_from_least(walk, family)) for family in fitting)
