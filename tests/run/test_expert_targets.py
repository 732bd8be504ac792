"""Targets of LoRA that PEFT moves to stacked experts."""

from typing import Any

import pytest

from advisor.opening import open_configs
from advisor.run import Lora

GLM, QWEN, QWEN_2 = "zai-org/GLM-4.5-Air", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen1.5-MoE-A2.7B"
EXPERTS = ["gate_proj", "up_proj", "down_proj"]


def lora_of(model: str, stack: dict[str, str] | None = None, **keys: Any) -> Lora:
    run = open_configs({"base_model": model, "adapter": "lora", "lora_r": 8, **keys}, None, "1x h100", stack).run
    assert run.model is not None
    assert run.lora is not None
    return run.lora


def test_all_linear_layers_include_experts_where_dense_ones_share_their_names():
    lora = lora_of(GLM, lora_target_linear=True)
    assert set(lora.targets) == {"q_proj", "k_proj", "v_proj", "o_proj"}
    assert set(lora.target_parameters) == {"gate_up_proj", "down_proj"}
    assert lora.rank_pattern == {"gate_up_proj": 16}


def test_all_linear_layers_leave_experts_out_where_nothing_else_has_their_names():
    assert lora_of(QWEN, lora_target_linear=True).target_parameters == ()


def test_named_experts_become_parameters():
    lora = lora_of(QWEN, lora_target_modules=["q_proj", *EXPERTS])
    assert lora.targets == ("q_proj",)
    assert set(lora.target_parameters) == {"gate_up_proj", "down_proj"}


@pytest.mark.parametrize("stack", [{"transformers": "4.57.1"}, {"peft": "0.18.1"}])
def test_older_libraries_leave_names_as_they_are(stack: dict[str, str]):
    assert lora_of(GLM, stack, lora_target_modules=EXPERTS).targets == tuple(EXPERTS)


def test_patterns_are_resolved_from_peft_0_20_on():
    pattern = r".*\.mlp\.experts\.(gate|up)_proj"
    assert lora_of(GLM, {"peft": "0.19.1"}, lora_target_modules=pattern).targets == (pattern,)
    assert lora_of(GLM, lora_target_modules=pattern).target_parameters == ("gate_up_proj",)


def test_a_type_that_peft_does_not_know_keeps_its_targets():
    assert lora_of(QWEN_2, lora_target_modules=EXPERTS).targets == tuple(EXPERTS)


def test_half_of_what_is_fused_stays_as_it_is_written():
    assert lora_of(GLM, lora_target_modules=["gate_proj", "down_proj"]).targets == ("gate_proj", "down_proj")
