"""What GRPO's answers take: a token waits for weights and cache, a row for its turn."""

from dataclasses import replace

import pytest

from advisor.run import Run
from advisor.speed import StepTime, Unpriced, step_time

GRPO = """\
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: a, type: alpaca}]
learning_rate: 1e-5
rl: grpo
trl: {use_vllm: true, vllm_mode: colocate, max_completion_length: 1024, num_generations: 8}
vllm: {gpu_memory_utilization: 0.5}
sequence_len: 2048
micro_batch_size: 8
gradient_accumulation_steps: 4
attn_implementation: flash_attention_2
bf16: true
"""
PARAMETERS = 8_030_261_248


def timed(run: Run) -> StepTime:
    found = step_time(run)
    assert isinstance(found, StepTime)
    return found


def answers(run: Run) -> float:
    return timed(run).by_kind()["rollouts"]


def test_each_token_reads_the_weights_and_the_cache(make_run):
    """2 bytes a weight, 128 KiB a token of cache, at 80 % of 3.35 TB/s, and a millisecond of vLLM's own."""
    run = make_run(GRPO, "1x h100-80gb")
    (term,) = (one for one in timed(run).terms if one.name == "answers, token by token")
    weights, cache = 2 * (PARAMETERS - 128256 * 4096), 32 * 1536 * 131072
    assert term.seconds == pytest.approx(1024 * ((weights + cache) / (0.8 * 3.35e12) + 1e-3), rel=0.02)


def test_rows_wait_where_the_cache_has_no_room_for_all(make_run):
    run = make_run(GRPO.replace("0.5", "0.22"), "1x h100-80gb")
    assert answers(run) > answers(make_run(GRPO, "1x h100-80gb"))


def test_the_model_itself_is_slower_than_vllm_as_each_layer_is_launched(make_run):
    run = make_run(GRPO.replace("use_vllm: true, vllm_mode: colocate, ", ""), "1x h100-80gb")
    assert answers(run) > 2 * answers(make_run(GRPO, "1x h100-80gb"))


def test_answers_that_are_used_twice_take_half(make_run):
    twice = make_run(GRPO.replace("num_generations: 8", "num_generations: 8, num_iterations: 2"), "1x h100-80gb")
    assert answers(twice) == pytest.approx(answers(make_run(GRPO, "1x h100-80gb")) / 2)


def test_zero_3_gathers_the_weights_for_the_answers(make_run):
    zero = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'
    names = {term.name for term in timed(make_run(GRPO, "8x h100-80gb", deepspeed=zero)).terms}
    assert "weights gathered to generate" in names


def test_vllms_answers_are_scored_by_the_model_once_more(make_run):
    run = make_run(GRPO, "1x h100-80gb")
    assert run.rollouts is not None
    own = replace(run, rollouts=replace(run.rollouts, engine="model"))
    assert timed(run).by_kind()["compute"] > 1.2 * timed(own).by_kind()["compute"]


@pytest.mark.parametrize(("mode", "said"), [("colocate", "as long as it may be"), ("server", "not counted")])
def test_it_is_a_rough_figure_and_says_so(make_run, mode: str, said: str):
    found = timed(make_run(GRPO.replace("colocate", mode), "1x h100-80gb"))
    assert found.confidence == "low" and any(said in doubt for doubt in found.doubts)
    assert (found.by_kind()["rollouts"] > 0) == (mode == "colocate")


def test_ebft_has_no_time(make_run):
    found = step_time(make_run(GRPO.replace("rl: grpo", "rl: ebft"), "1x h100-80gb"))
    assert isinstance(found, Unpriced) and "ebft" in found.reason
