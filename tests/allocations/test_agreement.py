# pyright: basic
"""Two derivations, one number: the peak of the tape and that of the ledger."""

from collections.abc import Mapping
from typing import Any

import pytest

from advisor.allocations.allocator.settings import Settings
from advisor.allocations.coverage import uncovered
from advisor.allocations.replay import replayed
from advisor.allocations.step.assembly import recorded
from advisor.memory import estimate
from advisor.models.architecture import Architecture
from advisor.opening import open_configs

from .agreement.cases import CASES
from .agreement.shortened import shortened

WITHIN = 0.005
EXPANDABLE = Settings(expandable_segments=True)
"""As axolotl sets it; else blocks that are up to 1 MiB too large are not split: CUDACachingAllocator.cpp, should_split."""

CHOSEN = [pytest.param(name, marks=pytest.mark.slow if place % 4 else ()) for place, name in enumerate(CASES)]
"""One setting in four without delay: each model, base and checkpoint is among them."""


def peaks(keys: Mapping[str, Any], gpus: str) -> tuple[int, int]:
    """Allocated bytes at the peak of the tape, and of the ledger."""
    run = open_configs(keys, None, gpus, None).run
    assert not list(uncovered(run))
    found = estimate(run)
    assert found is not None
    return replayed(recorded(run).events, EXPANDABLE).peak_allocated, found.allocated_peak


def few_layers(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The same setting with few layers."""
    return {**keys, "overrides_of_model_config": shortened(keys["base_model"])}


def test_there_are_enough_of_them():
    assert len(CASES) >= 992


@pytest.mark.parametrize("name", CHOSEN)
def test_tape_and_ledger_agree_on_few_layers(name: str):
    keys, gpus = CASES[name]
    tape, ledger = peaks(few_layers(keys), gpus)
    assert tape == pytest.approx(ledger, rel=WITHIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for place, name in enumerate(CASES) if place % 4 == 2])
def test_tape_and_ledger_agree_on_full_size(name: str):
    tape, ledger = peaks(*CASES[name])
    assert tape == pytest.approx(ledger, rel=WITHIN)


def kinds(model: Architecture) -> set[tuple[Any, ...]]:
    """The kinds of a model's layers, and the layers of its towers by theirs."""
    layers = {
        (one.attention and (one.attention.kind, one.attention.window), one.mlp and one.mlp.experts, one.norms)
        for one in model.blocks
    }
    return layers | {(tower.name, tower.grid.window) for tower in model.towers}


@pytest.mark.parametrize("name", {keys["base_model"]: name for name, (keys, _) in CASES.items()}.values())
def test_few_layers_are_of_all_kinds(name: str):
    keys, gpus = CASES[name]
    full, few = (open_configs(one, None, gpus, None).run.model for one in (keys, few_layers(keys)))
    assert full is not None
    assert few is not None
    assert kinds(few) == kinds(full)
    assert few.layers <= 9
