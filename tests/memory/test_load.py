"""What is on a GPU while the model is loaded, before any engine has cast it."""

from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.memory.model import load_terms

from .small import ADAPTER, LAYER, LORA, TABLE, P, named, small

EIGHT_BIT = {"load_in_8bit": True, **LORA}
FOUR_BIT = {"load_in_4bit": True, **LORA}


def loaded(folder: Path, **keys: Any) -> dict[str, int]:
    """The terms of the load."""
    made = small(folder, **keys)
    return named(load_terms(made.run, made.model, made.weights))


@pytest.mark.parametrize("stage", [1, 2])
def test_a_base_that_peft_turns_to_fp32_is_whole_before_deepspeed_casts_it(tmp_path: Path, stage: int) -> None:
    """``lora`` with ``load_in_4bit`` quantizes nothing; tables and norms are cast back, after passing through fp32."""
    found = loaded(tmp_path, **FOUR_BIT, zero={"stage": stage})
    assert found == loaded(tmp_path, **FOUR_BIT)
    assert found["weights"] >= 4 * 4 * (LAYER - 200) + 2 * 2 * TABLE + 4 * ADAPTER


def test_stage_3_builds_its_shards_without_that_upcast(tmp_path: Path) -> None:
    assert loaded(tmp_path, **FOUR_BIT, zero={"stage": 3})["shards as built"] == 2 * P // 2


@pytest.mark.parametrize("stage", [1, 2])
def test_adapters_are_in_fp32_until_the_engine_casts_them(tmp_path: Path, stage: int) -> None:
    assert loaded(tmp_path, **LORA, zero={"stage": stage})["weights"] == 2 * P + 4 * ADAPTER


def test_the_quantized_load_is_the_same_with_and_without_deepspeed(tmp_path: Path) -> None:
    assert loaded(tmp_path, **EIGHT_BIT, zero={"stage": 2}) == loaded(tmp_path, **EIGHT_BIT)


@pytest.mark.parametrize("stage", [None, "zero1.json"])
def test_a_mixture_whose_experts_are_turned_to_fp32_does_not_load(stage: str | None) -> None:
    keys = {
        "base_model": "Qwen/Qwen3-30B-A3B",
        "adapter": "qlora",
        "load_in_4bit": True,
        "lora_r": 16,
        "lora_alpha": 32,
        "lora_target_linear": True,
        "gradient_checkpointing": True,
        "sequence_len": 2048,
        "bf16": True,
        "datasets": [{"path": "d"}],
        "learning_rate": 1e-4,
        **({"deepspeed": f"deepspeed_configs/{stage}"} if stage else {}),
    }
    found = advisor.estimate(keys, gpus="1x a100-80gb")
    load = next(phase for phase in found.phases if phase.name == "load")
    assert load.bytes > 100 * 2**30
    assert found.verdict == "does-not-fit"


def test_grpo_without_an_adapter_loads_the_model_twice(tmp_path: Path) -> None:
    assert loaded(tmp_path, rl="grpo", trl={}, gpus=1)["second model"] == 2 * P
    assert "second model" not in loaded(tmp_path, rl="grpo", trl={}, gpus=1, **LORA)


def test_zero_3_has_a_checkpoint_whole_that_comes_through_a_quantizer(tmp_path: Path) -> None:
    turned = {
        "model_quantization_config": "FineGrainedFP8Config",
        "model_quantization_config_kwargs": {"dequantize": True},
    }
    assert loaded(tmp_path, zero={"stage": 3}, **turned)["whole weights"] == 2 * P
    assert "whole weights" not in loaded(tmp_path, zero={"stage": 3})
