"""What eight bits of the base cost, next to what users have seen: bitsandbytes-foundation/bitsandbytes#465."""

from typing import Any

import pytest

from advisor.opening import open_configs
from advisor.speed import StepTime, step_time

RUN = {
    "base_model": "meta-llama/Llama-2-7b-hf",
    "adapter": "lora",
    "lora_r": 8,
    "lora_alpha": 16,
    "lora_target_modules": ["q_proj", "v_proj"],
    "micro_batch_size": 1,
    "bf16": False,
    "fp16": True,
}
INT8, NF4 = {"load_in_8bit": True}, {"load_in_4bit": True, "adapter": "qlora"}


def slower(changes: dict[str, Any], sequence_len: int) -> float:
    """Times as long as on half precision, on the card of the report."""
    run = {**RUN, "sequence_len": sequence_len}
    found = [step_time(open_configs({**run, **each}, gpus="1x rtx-a5000").run) for each in ({}, changes)]
    before, after = (one.expected for one in found if isinstance(one, StepTime))
    return after / before


def test_short_rows_take_about_twice_as_long_in_8_bits_and_less_than_that_in_4():
    assert slower(INT8, 256) == pytest.approx(2, abs=0.2)
    assert 1.2 < slower(NF4, 256) < 2.0


def test_many_tokens_hide_what_is_around_the_int8_products():
    assert 1.0 < slower(INT8, 4096) < 1.1


def test_bf16_casts_to_the_fp16_that_the_kernels_take():
    assert slower({**INT8, "bf16": True, "fp16": False}, 4096) > slower(INT8, 4096)
