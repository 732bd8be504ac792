"""What checkpoints take on disk."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from advisor.memory.disk import Checkpoints, checkpoints
from advisor.opening import open_configs
from advisor.session import disk
from advisor.session.disk import free_bytes, shortage

LLAMA = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "optimizer": "adamw_torch_fused",
    "attn_implementation": "flash_attention_2",
}
PARAMETERS = 8_030_261_248
ZERO_2 = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}}
LORA = {"adapter": "lora", "lora_r": 16, "lora_alpha": 32, "lora_target_linear": True}
ADAPTER = 41_943_040


def of(deepspeed: dict[str, Any] | None = None, **config: Any) -> Checkpoints | None:
    return checkpoints(open_configs(LLAMA | config, deepspeed, "8x h100").run)


@pytest.mark.parametrize(
    ("config", "deepspeed", "weights", "states"),
    [
        ({}, ZERO_2, 2 * PARAMETERS, 12 * PARAMETERS),
        ({}, None, 2 * PARAMETERS, 4 * PARAMETERS),
        ({"save_only_model": True}, ZERO_2, 2 * PARAMETERS, 0),
        (LORA, None, 4 * ADAPTER, 8 * ADAPTER),
        (LORA, ZERO_2, 2 * ADAPTER, 12 * ADAPTER),
    ],
)
def test_weights_and_states_by_hand(config: Any, deepspeed: Any, weights: int, states: int):
    found = of(deepspeed, **config)
    assert found is not None and (found.weights, found.states) == (weights, states)


def test_nothing_is_said_where_nothing_is_saved_or_the_model_is_unknown():
    assert of(save_strategy="no") is None
    assert of(base_model="nobody/knows-this") is None


def test_kept_ones_one_more_and_the_model_at_the_end_must_fit():
    found = of(ZERO_2, save_total_limit=3, num_epochs=10)
    assert found is not None and found.least == 4 * found.one + found.weights
    assert "3 are kept" in found.words


@pytest.mark.parametrize("config", [{}, {"save_total_limit": 0}, {"save_total_limit": None}])
def test_axolotl_keeps_four_where_no_limit_is_set(config: Any):
    found = of(ZERO_2, num_epochs=10, **config)
    assert found is not None and found.least == 5 * found.one + found.weights
    assert found.words.endswith("; 4 are kept (axolotl's default)")


def test_other_trainers_keep_all_where_no_limit_is_set():
    run = open_configs(LLAMA | {"save_steps": 100}, ZERO_2, "8x h100", stack={"trainer": "hf-trainer"}).run
    found = checkpoints(run)
    assert found is not None and found.least == found.one + found.weights
    assert "no `save_total_limit`" in found.words


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ({}, 1),
        ({"num_epochs": 3}, 3),
        ({"num_epochs": 2, "saves_per_epoch": 2}, 4),
        ({"max_steps": 100, "save_steps": 40}, 3),
        ({"save_steps": 500}, 5),
    ],
)
def test_no_more_are_counted_than_the_run_writes(config: Any, count: int):
    found = of(ZERO_2, **config)
    assert found is not None and found.least == count * found.one + found.weights


class Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(("free", "lacks"), [(1 << 30, True), (1 << 50, False)])
def test_a_disk_without_room_is_said(monkeypatch: pytest.MonkeyPatch, free: int, lacks: bool):
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _path: Usage(free))
    said = shortage(open_configs(LLAMA | {"output_dir": "out"}, ZERO_2, "8x h100").run)
    assert (said is not None) == lacks
    if said:
        assert said.startswith("`output_dir: out` has 1.0 GiB free; checkpoints need ")


@pytest.mark.parametrize(("more", "lacks"), [(0, False), (-1, True)])
def test_a_disk_with_just_enough_has_room(monkeypatch: pytest.MonkeyPatch, more: int, lacks: bool):
    found = of(ZERO_2)
    assert found is not None
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _path: Usage(found.least + more))
    assert (shortage(open_configs(LLAMA, ZERO_2, "8x h100").run) is not None) == lacks


def test_axolotls_own_folder_counts_where_none_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _path: Usage(0))
    said = shortage(open_configs(LLAMA, ZERO_2, "8x h100").run)
    assert said is not None and said.startswith("`output_dir: ./model-out` has ")


def test_the_folder_above_counts_where_the_output_is_not_there_yet(tmp_path: Path):
    assert free_bytes(str(tmp_path / "a" / "b")) is not None
