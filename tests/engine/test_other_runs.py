"""What an expert would ask next is said where it is true: the named edit and the named model, tried."""

import re

import pytest

from advisor.documents import Set
from advisor.engine.options import Options, planner, room_rules
from advisor.engine.other_runs import GAIN, with_masters, with_vllm, without_few_bits, without_few_bits_of_states
from advisor.engine.smaller_model import smaller_model
from advisor.engine.states import Plan, State
from advisor.run import Run
from advisor.run.build import with_config
from advisor.util import counted

RULES = room_rules(Options())
ZERO_1 = '{"zero_optimization": {"stage": 1, "reduce_bucket_size": 50000000}, "bf16": {"enabled": true}}'
FULL = """
base_model: Qwen/Qwen3-8B-Base
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
output_dir: ./out
num_epochs: 1
sequence_len: 2048
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 4
learning_rate: 2e-5
optimizer: adamw_torch_fused
bf16: true
attn_implementation: flash_attention_2
gradient_checkpointing: true
"""
QLORA = f"{FULL}adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"


def test_adapters_that_need_no_few_bits_are_told_so_with_the_end_of_the_edits(make_run):
    run = make_run(QLORA, "1x h100-80gb")
    after = State(with_config(run, [Set("adapter", "lora"), Set("load_in_4bit", False)]))
    needed = f"{after.estimate.needed.high / 2**30:.1f}"
    time = after.seconds / State(run).seconds - 1
    assert without_few_bits(run) == (
        f"4 bits are not needed here: LoRA on the base as released takes {needed} of 78.5 GiB, {time:+.0%} time"
        " (`adapter: lora`, `load_in_4bit: false`)."
    )


def test_adapters_with_much_room_are_told_so_where_few_bits_are_no_faster(make_run):
    run = make_run(QLORA.replace("micro_batch_size: 1", "micro_batch_size: 8"), "1x mi300x")
    after = State(with_config(run, [Set("adapter", "lora"), Set("load_in_4bit", False)]))
    assert GAIN < after.seconds / State(run).seconds <= 1
    assert without_few_bits(run).startswith("4 bits are not needed here")
    full = make_run(QLORA.replace("micro_batch_size: 1", "micro_batch_size: 8"), "1x rtx-a6000")
    assert without_few_bits(full) == ""


@pytest.mark.parametrize(
    ("text", "card"),
    [
        (QLORA, "1x rtx-4060-ti"),
        (FULL, "1x h100-80gb"),
        (QLORA.replace("Qwen/Qwen3-8B-Base", "unsloth/Qwen3-8B-bnb-4bit"), "1x h100-80gb"),
    ],
    ids=["no-room", "no-adapter", "released-in-4-bits"],
)
def test_few_bits_that_are_needed_or_no_choice_are_not_spoken_of(make_run, text: str, card: str):
    assert without_few_bits(make_run(text, card)) == ""


def test_answers_that_the_model_makes_itself_are_told_what_vllm_takes(make_run):
    rows = f"{FULL.replace('sample_packing: true', '')}rl: grpo\nadapter: lora\nlora_r: 16\nlora_alpha: 32\n"
    run = make_run(f"{rows}trl:\n  num_generations: 4\n  max_completion_length: 1024\n", "1x h100-80gb")
    said = with_vllm(run)
    share = float(re.search(r"gpu_memory_utilization: ([\d.]+)", said)[1])
    keys = {"trl.use_vllm": True, "trl.vllm_mode": "colocate", "vllm.gpu_memory_utilization": share}
    after = State(with_config(run, [Set(key, value) for key, value in keys.items()]))
    assert after.verdict == "fits" and after.run.rollouts.engine == "vllm"
    assert f"{1 - after.seconds / State(run).seconds:.0%} off the time, {after.estimate.filled}" in said
    assert with_vllm(after.run) == ""
    assert with_vllm(make_run(FULL, "1x h100-80gb")) == ""
    assert with_vllm(make_run(f"{rows}trl:\n  num_generations: 4\n", "1x rtx-4090")) == ""


def test_eight_bits_are_named_by_their_own_key(make_run):
    text = QLORA.replace("adapter: qlora", "adapter: lora").replace("load_in_4bit", "load_in_8bit")
    assert without_few_bits(make_run(text, "1x h100-80gb")).endswith("(`load_in_8bit: false`).")


def test_masters_are_named_with_what_they_take_where_gpus_share_them(make_run):
    text = FULL.replace("8B-Base", "1.7B-Base")
    run = make_run(text, "8x h100-80gb")
    sharded = make_run(text, "8x h100-80gb", deepspeed=ZERO_1)
    needed = float(re.search(r"masters, ([\d.]+) of 78.0 GiB, (?:same|\+\d+%) time\.$", with_masters(run, RULES))[1])
    assert needed == pytest.approx(State(sharded).estimate.needed.high / 2**30, rel=0.05)


def test_masters_are_named_in_place_of_fsdp_that_has_none(make_run):
    fsdp = (
        "fsdp_version: 2\nfsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  activation_checkpointing: true\n"
    )
    text = FULL.replace("gradient_checkpointing: true\n", "")
    said = with_masters(make_run(f"{text}{fsdp}", "8x h200"), RULES)
    needed = float(re.search(r"zero1.json`\) in place of FSDP keeps fp32 masters, ([\d.]+) of", said)[1])
    sharded = make_run(FULL, "8x h200", deepspeed=ZERO_1)
    assert needed == pytest.approx(State(sharded).estimate.needed.high / 2**30, rel=0.05)


def test_an_eight_bit_optimizer_that_is_not_needed_is_named(make_run):
    few = FULL.replace("adamw_torch_fused", "adamw_bnb_8bit")
    whole = State(make_run(FULL, "1x h200")).estimate.filled
    assert f"not needed here: `optimizer: adamw_torch_fused` takes {whole}, " in without_few_bits_of_states(
        make_run(few, "1x h200")
    )
    assert without_few_bits_of_states(make_run(FULL, "1x h200")) == ""
    assert without_few_bits_of_states(make_run(few, "1x rtx-a6000")) == ""


@pytest.mark.parametrize(
    ("text", "gpus"),
    [(FULL, "1x h100-80gb"), (f"{FULL}adapter: lora\nlora_r: 16\nlora_target_linear: true\n", "8x h100-80gb")],
    ids=["one-gpu", "adapter"],
)
def test_masters_that_cost_more_or_are_there_are_not_spoken_of(make_run, text: str, gpus: str):
    assert with_masters(make_run(text, gpus), RULES) == ""


def planned(run: Run) -> Plan:
    """The plan that trains the same."""
    return planner(Options())(run, True)


def without_steps(run: Run) -> Plan:
    """The run as it is written."""
    return Plan((), State(run))


def test_the_largest_smaller_model_of_the_make_that_fits_is_named(make_run):
    run = make_run(FULL, "1x rtx-4090")
    said = smaller_model(run, without_steps)
    assert said.startswith("`Qwen/Qwen3-1.7B-Base` would fit as written, trained in full: ")
    sizes = {size: State(make_run(FULL.replace("8B", size), "1x rtx-4090")) for size in ("4B", "1.7B")}
    assert [sizes[size].verdict for size in ("4B", "1.7B")] == ["does-not-fit", "fits"]
    assert f"{sizes['1.7B'].estimate.needed.high / 2**30:.1f} of 23.1 GiB" in said


def test_a_larger_one_that_edits_make_fit_comes_before(make_run):
    large = FULL.replace("micro_batch_size: 1", "micro_batch_size: 16")
    end = planned(make_run(large.replace("8B", "4B"), "1x rtx-a6000"))
    assert end.verdict == "fits" and end.steps
    said = smaller_model(make_run(large, "1x rtx-a6000"), planned)
    edits = counted(len(end.steps), "edit")
    assert said == f"`Qwen/Qwen3-4B-Base` would fit with {edits}, trained in full: {end.end.estimate.filled}."


def test_of_several_generations_the_runs_own_is_named(make_run):
    for name in ("meta-llama/Meta-Llama-3-70B", "meta-llama/Meta-Llama-3.1-70B"):
        said = smaller_model(make_run(QLORA.replace("Qwen/Qwen3-8B-Base", name), "1x rtx-4090"), without_steps)
        assert said.partition(" ")[0] == f"`{name.replace('70B', '8B')}`"


@pytest.mark.parametrize(
    ("name", "smaller"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "`meta-llama/Llama-3.2-1B-Instruct`"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "`deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B`"),
        ("Qwen/Qwen3-30B-A3B", ""),
        ("mistralai/Mistral-7B-v0.1", ""),
    ],
)
def test_a_smaller_model_is_of_the_same_sort(make_run, name: str, smaller: str):
    said = smaller_model(make_run(FULL.replace("Qwen/Qwen3-8B-Base", name), "1x rtx-4090"), without_steps)
    assert said.partition(" ")[0] == smaller
