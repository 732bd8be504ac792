"""What a step costs in this run's own numbers."""

import re

import pytest

from advisor.engine.cost_text import cost_text
from advisor.engine.states import State
from advisor.run.build import edited
from advisor.speed import traffic

FULL = """
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
learning_rate: 2e-5
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 8
sample_packing: true
"""
LORA = FULL + "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
STAGE_1 = '{"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}}'


def after(run, **edits):
    return cost_text(State(run), State(edited(run, edits, "step")))


def test_zero_2_reduces_in_every_micro_step_what_zero_1_reduces_once(make_run):
    """Of n bytes of gradients: 2n under stage 1, 2 k n under stage 2, and n more for the weights."""
    one = make_run(FULL, "8x a100-80gb", deepspeed=STAGE_1)
    two = edited(one, {"zero_stage": 2}, "step")
    assert traffic(two) / traffic(one) == pytest.approx((2 * 8 + 1) / 3)


def test_zero_3_gathers_frozen_weights_too(make_run):
    """Adapters are a hundredth of the model, whose weights travel twice in each micro-step."""
    run = make_run(LORA, "8x a100-80gb", deepspeed=STAGE_1)
    three = edited(run, {"zero_stage": 3}, "step")
    assert traffic(three) > 100 * traffic(run)
    assert re.search(r"In this run: .* -> 2\d\d GB a step over the links of each GPU", after(run, zero_stage=3))


def test_an_offload_says_what_the_host_holds_of_each_parameter(make_run):
    said = after(make_run(FULL, "8x a100-80gb", deepspeed=STAGE_1), zero_stage=2, offload_optimizer="cpu")
    bytes_each = float(re.search(r"\(([\d.]+) bytes more for each trained parameter\)", said)[1])
    assert 16 < bytes_each < 24


def test_checkpoints_say_what_they_compute_again(make_run):
    said = after(make_run(FULL, "1x a100-80gb"), activation_checkpointing=True)
    assert re.search(r"compute [\d.]+ -> [\d.]+ s \(\+[23]\d%\)", said)


def test_nothing_is_said_where_nothing_changes(make_run):
    run = make_run(LORA, "1x a100-80gb")
    assert cost_text(State(run), State(run)) == ""


def test_layer_inputs_on_the_host_travel_twice_in_each_micro_step(make_run):
    from advisor.speed.constants import SHIPPED
    from advisor.speed.host import activation_copies, host_of

    run = make_run(LORA + "gradient_checkpointing: true\nactivation_offloading: true\n", "1x a100-80gb")
    host = host_of(run.hardware, SHIPPED)
    assert activation_copies(run, host) * host.copies == pytest.approx(2 * 2048 * 4096 * 32 * 2)
    assert State(run).seconds > State(edited(run, {"activation_offloading": None}, "step")).seconds
