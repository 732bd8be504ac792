"""What GRPO holds next to training: vLLM's share of the card, the answers' cache, the reference, the answers' logits."""

from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.engine.registry import built_in_rules
from advisor.memory import loss
from advisor.memory.liger_policy import scores_again
from advisor.memory.model import reference_terms
from advisor.memory.phases import Phases
from advisor.record import replace

from .small import LORA, Small, named, small

RL = {"rl": "grpo", "micro_batch_size": 2, "gradient_accumulation_steps": 3}
COLOCATED = {"use_vllm": True, "vllm_mode": "colocate", "max_completion_length": 4}
CARD = 84_975_927_951
QWEN = {
    "base_model": "Qwen/Qwen2.5-7B-Instruct",
    "adapter": "lora",
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_linear": True,
    "sequence_len": 2048,
    "micro_batch_size": 2,
    "gradient_checkpointing": True,
    "bf16": True,
    "datasets": [{"path": "d"}],
    "learning_rate": 1e-5,
    "rl": "grpo",
}


def phase(made: Small, name: str) -> dict[str, int]:
    """The terms of one phase by name."""
    phases = {one.name: one for one in Phases(made.run, made.model, made.weights).in_order}
    return named(phases[name].terms) if name in phases else {}


def vllm(folder: Path, trl: dict[str, Any], **keys: Any) -> dict[str, int | None]:
    """vLLM's share of each phase."""
    made = small(folder, gpus=1, **RL, trl=trl, **keys)
    names = ("load", "forward and loss", "backward", "optimizer step", "generation")
    return {name: phase(made, name).get("vLLM") for name in names}


def test_a_colocated_vllm_takes_its_share_of_the_whole_card_in_every_step(tmp_path: Path) -> None:
    found = vllm(tmp_path, COLOCATED, vllm={"gpu_memory_utilization": 0.5})
    assert set(found.values()) == {None, CARD // 2 + 1}
    assert found["load"] is None


def test_a_sleeping_vllm_is_awake_for_its_answers_alone(tmp_path: Path) -> None:
    found = vllm(tmp_path, {**COLOCATED, "vllm_enable_sleep_mode": True}, vllm={"gpu_memory_utilization": 0.5})
    assert [name for name, share in found.items() if share] == ["generation"]


@pytest.mark.parametrize(
    ("trl", "keys", "share"),
    [
        (COLOCATED, {}, 0.9),
        ({"use_vllm": True}, {}, None),
        ({"use_vllm": True}, {"vllm": {"gpu_memory_utilization": 0.7}}, None),
        (COLOCATED, {"vllm": {"gpu_memory_utilization": 0.7}}, 0.7),
        ({"use_vllm": True, "vllm_mode": "server"}, {"vllm": {"gpu_memory_utilization": 0.7}}, None),
        ({"use_vllm": False, "vllm_mode": "colocate"}, {}, None),
    ],
)
def test_the_share_is_the_one_that_trl_is_given(
    tmp_path: Path, trl: dict[str, Any], keys: dict[str, Any], share: float | None
) -> None:
    expected = None if share is None else round(share * CARD)
    assert vllm(tmp_path, trl, **keys)["backward"] == expected


def test_a_server_needs_gpus_of_its_own() -> None:
    keys = {**QWEN, "trl": {"use_vllm": True}, "vllm": {"tensor_parallel_size": 2, "data_parallel_size": 2}}
    found = advisor.estimate(keys, gpus="1x a100-80gb")
    assert any("needs 4 GPUs of its own" in note for note in found.notes)
    assert found.verdict == "fits"


@pytest.mark.parametrize(
    ("installed", "parallel", "host", "level"),
    [
        (None, 2, "0.0.0.0", "note"),
        (2, 2, "localhost", "error"),
        (2, None, "localhost", "note"),
        (1, None, "localhost", "error"),
        (1, None, "10.0.0.7", "note"),
    ],
)
def test_a_host_without_a_card_left_to_train_on_is_an_error(
    tmp_path: Path, installed: int | None, parallel: int | None, host: str, level: str
) -> None:
    trl = {"use_vllm": True, "vllm_server_host": host}
    run = small(tmp_path, gpus=1, **RL, trl=trl, vllm={"tensor_parallel_size": parallel}).run
    assert run.hardware is not None
    rule = built_in_rules("lint")["vllm-server-gpus"]
    assert rule.finds is not None
    found = list(rule.finds(replace(run, hardware=replace(run.hardware, installed=installed))))
    assert [hit.level or rule.level for hit in found] == [level]


def test_a_large_share_leaves_no_room_for_training() -> None:
    keys = {**QWEN, "trl": {"use_vllm": True, "vllm_mode": "colocate"}, "vllm": {"gpu_memory_utilization": 0.85}}
    assert advisor.estimate(keys, gpus="1x a100-80gb").verdict == "does-not-fit"


def test_fragmentation_is_allowed_for_on_what_torch_cuts_up() -> None:
    keys = {**QWEN, "trl": {"use_vllm": True, "vllm_mode": "colocate"}, "vllm": {"gpu_memory_utilization": 0.5}}
    found = advisor.estimate(keys, gpus="1x a100-80gb")
    without = advisor.estimate({**keys, "trl": {"use_vllm": True, "vllm_mode": "server"}}, gpus="1x a100-80gb")
    assert found.needed.high - without.needed.high == pytest.approx(CARD / 2, abs=2**20)


def test_the_model_itself_answers_with_a_cache_for_each_row_of_the_generation(tmp_path: Path) -> None:
    found = phase(small(tmp_path, gpus=1, **RL, trl={"max_completion_length": 4}), "generation")
    assert found["key-value cache"] == 2 * 6 * 10 * 200 * (4 + 1)


def test_a_generation_batch_is_of_all_ranks(tmp_path: Path) -> None:
    trl = {"max_completion_length": 4, "generation_batch_size": 16}
    found = phase(small(tmp_path, gpus=2, **RL, trl=trl), "generation")
    assert found["key-value cache"] == 2 * 8 * 10 * 200 * (4 + 1)


def test_only_the_answers_logits_are_made(tmp_path: Path) -> None:
    made = small(tmp_path, gpus=1, **RL, trl={"max_completion_length": 4})
    assert loss.loss_backward_peak_bytes(made.run, made.model) == 16 * 2 * (4 + 1) * 1000


@pytest.mark.parametrize(
    ("keys", "width"),
    [
        ({"trl": {}}, 0),
        ({"trl": {"beta": 0.1}}, 4),
        ({"trl": {}, "rl_beta": 0.1}, 4),
        ({"trl": {"beta": 0.1}, "zero": {"stage": 2}}, 2),
        ({"trl": {"beta": 0.1}, **LORA}, 0),
    ],
)
def test_the_reference_is_trls_own_copy_in_fp32_unless_an_adapter_can_be_turned_off(
    tmp_path: Path, keys: dict[str, Any], width: int
) -> None:
    made = small(tmp_path, **RL, **keys)
    found = reference_terms(made.run, made.model)
    assert sum(term.bytes for term in found) == width * made.model.parameters


def test_a_reward_model_is_not_counted() -> None:
    keys = {**QWEN, "trl": {"reward_funcs": ["org/reward-model"]}}
    assert [one.key for one in advisor.estimate(keys, gpus="1x a100-80gb").uncounted] == ["trl.reward_funcs"]
    keys = {**QWEN, "trl": {"reward_funcs": ["rewards.length"]}}
    assert advisor.estimate(keys, gpus="1x a100-80gb").verdict == "fits"


LIGER = {"max_completion_length": 4, "use_liger_loss": True}
HEAD = 100 * 1000


def test_ligers_loss_makes_no_logits_but_whole_gradients_of_the_head(tmp_path: Path) -> None:
    made = small(tmp_path, gpus=1, **RL, **LORA, trl=LIGER)
    kept = 2 * 2 * 5 * 100 + 2 * HEAD
    assert loss.loss_saved_bytes(made.run, made.model) == kept
    # In fp32, and cast back; tiles of logits, here of five tokens, are smaller.
    assert loss.loss_forward_peak_bytes(made.run, made.model) == kept + 6 * HEAD + 4 * 5 * 100
    assert loss.loss_backward_peak_bytes(made.run, made.model) == 2 * kept


def test_ligers_loss_is_counted() -> None:
    assert advisor.estimate({**QWEN, "trl": LIGER}, gpus="1x a100-80gb").verdict == "fits"


@pytest.mark.parametrize(
    ("trl", "scored"),
    [
        (LIGER, False),
        ({**LIGER, "beta": 0.1}, True),
        ({**LIGER, "num_iterations": 2}, True),
        ({**LIGER, "use_vllm": True, "vllm_mode": "server"}, True),
    ],
)
def test_ligers_loss_leaves_the_logits_of_older_answers(tmp_path: Path, trl: dict[str, Any], scored: bool) -> None:
    made = small(tmp_path, gpus=1, **RL, **LORA, trl=trl)
    assert scores_again(made.run) is scored
    if made.run.rollouts is not None and made.run.rollouts.engine == "server":
        assert phase(made, "generation")["logits of older answers"] == 6 * 2 * 5 * 1000
