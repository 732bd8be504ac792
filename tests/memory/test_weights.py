"""Weights as they are stored: what they depend on."""

import random

import pytest

from advisor.memory.weights import STORED_BY, Stored, grouped
from advisor.record import replace
from advisor.run import Run
from advisor.run.build import edited
from tests.benchmarks.plans import opened, random_run

KEYED = {*STORED_BY, "model", "lora", "sharding"}


class Watched(Run):
    """A run that notes which of its fields are read."""

    read: set[str]

    def __getattribute__(self, name: str) -> object:
        if name in Run.__annotations__:
            object.__getattribute__(self, "read").add(name)
        return object.__getattribute__(self, name)


def watched(run: Run) -> Watched:
    one = object.__new__(Watched)
    one.__dict__.update({name: vars(run)[name] for name in Run.__annotations__}, read=set())
    return one


@pytest.mark.parametrize("seed", range(40))
def test_weights_that_are_kept_for_the_next_run_depend_on_what_tells_them_apart_alone(seed: int):
    run = opened(*random_run_with(seed))
    assert run.model is not None
    one = watched(run)
    grouped.__wrapped__(Stored(one, run.model))
    assert one.read <= KEYED


def random_run_with(seed: int):
    config, gpus = random_run(random.Random(seed))
    return config, None, gpus


def test_runs_that_store_alike_share_their_weights_and_others_do_not():
    run = opened(
        {
            "base_model": "meta-llama/Llama-3.1-8B",
            "adapter": "lora",
            "lora_r": 8,
            "lora_alpha": 16,
            "lora_target_linear": True,
        },
        None,
        "2x h100",
    )
    assert run.model is not None
    same = edited(run, {"micro_batch_size": 1, "gradient_accumulation_steps": 4}, "x")
    wider = replace(run, lora=replace(run.lora, rank=16))
    assert Stored(same, run.model) == Stored(run, run.model) != Stored(wider, run.model)
