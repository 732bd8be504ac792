# pyright: basic
"""What a run that fits has room for, and what its links take: told where one file is looked at, and true."""

import json
import re

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.documents import Set
from advisor.engine.network import Links, divides_experts, network_words
from advisor.engine.registry import built_in_rules
from advisor.engine.room import more_room, room_for
from advisor.engine.states import State
from advisor.run.axolotl.edits import CUT_PLUGIN
from advisor.run.build import with_config
from advisor.speed import step_time

RULES = {**built_in_rules("fit"), **built_in_rules("speed")}
FULL = """
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
output_dir: ./out
num_epochs: 1
sequence_len: 4096
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 4
learning_rate: 2e-5
attn_implementation: flash_attention_2
gradient_checkpointing: true
"""
FSDP = """
fsdp_version: 2
fsdp_config:
  reshard_after_forward: true
  auto_wrap_policy: TRANSFORMER_BASED_WRAP
"""
CLUSTER = "2n8x h100-80gb host=1TiB net=400Gb/s"
ZERO_3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'


def test_the_larger_micro_batch_leaves_room_and_the_next_does_not(make_run):
    run = make_run(FULL + FSDP, "8x h100-80gb")
    room = room_for(run)
    assert room is not None and room.micro_batch_size >= 2
    assert room.global_batch_size == 32 * room.micro_batch_size
    ends = [State(with_config(run, [Set("micro_batch_size", room.micro_batch_size + more)])) for more in (0, 1)]
    assert ends[0].verdict == "fits" and not ends[0].estimate.has_little_room
    assert ends[1].verdict != "fits" or ends[1].estimate.has_little_room
    assert f"micro_batch_size 1 -> {room.micro_batch_size}" in room.text
    times = [step_time(each).expected / each.global_batch_size for each in (run, ends[0].run)]
    assert room.text.endswith(f" GiB, {times[1] / times[0] - 1:+.0%} time a token.")


def test_less_than_twice_the_batch_is_no_room(make_run):
    run = make_run(FULL + FSDP, "8x h100-80gb")
    room = room_for(run)
    assert room is not None
    nearly = with_config(run, [Set("micro_batch_size", room.micro_batch_size // 2 + 1)])
    assert room_for(nearly) is None


@pytest.mark.parametrize(("net", "is_said"), [("25Gb/s", True), ("3200Gb/s", False)])
def test_a_slow_network_is_named_with_its_share(make_run, net, is_said):
    run = make_run(FULL, f"4n8x h100-80gb net={net}", deepspeed=ZERO_3)
    said = network_words(Links(run, RULES))
    assert bool(said) == is_said
    if is_said:
        found = step_time(run)
        share = found.by_kind()["link"] / found.expected
        assert f"The network takes {share:.0%} of the step" in said and "25 Gb/s between nodes" in said


def test_what_helps_is_faster_by_the_times_of_the_run_with_it(make_run):
    run = make_run(FULL + FSDP, "4n8x h100-80gb net=25Gb/s")
    said = network_words(Links(run, RULES))
    within = with_config(run, [Set("dp_shard_size", 8), Set("dp_replicate_size", 4)])
    seconds = re.search(r"([\d.]+) s with `dp_shard_size: 8`, `dp_replicate_size: 4`", said)
    assert seconds is not None
    assert float(seconds[1]) == pytest.approx(step_time(within).expected, rel=0.01)
    assert step_time(within).expected < 0.9 * step_time(run).expected


def test_links_of_one_gpu_are_no_matter(make_run):
    assert network_words(Links(make_run(FULL, "1x h200"), RULES)) == ""


@pytest.mark.parametrize(("options", "is_shown"), [((), True), (("-v",), True), (("-q",), False)])
def test_both_are_shown_at_the_usual_level_and_not_in_short(tmp_path, monkeypatch, options, is_shown):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(FULL + FSDP)
    call = ["check", "--isolated", "--gpus", "4n8x h100-80gb net=25Gb/s", *options, "run.yaml"]
    output = " ".join(CliRunner().invoke(main, call).output.split())
    assert ("oom for micro_batch_size 1 -> " in output) == ("The network takes " in output) == is_shown


def test_json_has_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(FULL + FSDP)
    call = ["check", "--isolated", "--gpus", "4n8x h100-80gb net=25Gb/s", "--output-format", "json", "run.yaml"]
    answer = json.loads(CliRunner().invoke(main, call).output)["runs"][0]["answer"]
    assert answer["room"]["micro_batch_size"] > 1 and answer["network"].startswith("The network takes ")


def test_little_room_is_told_what_makes_more(make_run):
    run = make_run(FULL.replace("micro_batch_size: 1", "micro_batch_size: 4"), "1x gh200-96gb")
    assert State(run).verdict == "fits" and State(run).estimate.has_little_room
    said = re.fullmatch(
        r"More room with fused loss \(Liger\), same training: ([\d.]+) of 93.9 GiB\.", more_room(run, RULES)
    )
    assert said and float(said[1]) < 85


def test_where_nothing_makes_room_for_free_the_optimizer_goes_to_the_host_and_says_its_time(make_run):
    text = FULL.replace("8B", "70B")
    text += f"activation_offloading: hidden_states\nplugins: [{CUT_PLUGIN}]\n"
    small = ZERO_3.replace('"stage": 3', '"stage": 3, "reduce_bucket_size": "auto", "sub_group_size": 1e8')
    run = make_run(text, CLUSTER, deepspeed=small)
    assert State(run).estimate.has_little_room
    said = more_room(run, RULES)
    assert re.fullmatch(r"More room with optimizer states on the host, same training, \+\d+% time a token: .*", said)


def test_a_run_that_leaves_less_than_a_tenth_is_told_what_is_free_alone(make_run):
    text = FULL.replace("micro_batch_size: 1", "micro_batch_size: 4").replace(
        "sequence_len: 4096", "sequence_len: 3712"
    )
    run = make_run(text, "1x gh200-96gb")
    found = State(run).estimate
    assert found.is_full and not found.has_little_room
    assert "fused loss (Liger), same training: " in more_room(run, RULES)
    assert more_room(run, {"offload-optimizer": RULES["offload-optimizer"]}) == ""


def test_a_run_with_room_is_told_nothing_of_it(make_run):
    assert more_room(make_run(FULL + FSDP, "8x h100-80gb"), RULES) == ""


def test_where_lora_does_not_fit_with_whole_weights_qlora_is_named_for_a_slow_network(make_run):
    large = FULL.replace("Llama-3.1-8B", "Llama-3.1-70B")
    said = network_words(Links(make_run(large, "4n8x h100-80gb net=25Gb/s", deepspeed=ZERO_3), RULES))
    assert re.search(r"[\d.]+ s with QLoRA and (ZeRO-\d|DDP)[^,]* \(other training\)", said), said


SPREAD = """
base_model: Qwen/Qwen3-30B-A3B
adapter: lora
lora_r: 8
lora_alpha: 16
lora_target_modules: [q_proj, v_proj]
sequence_len: 64
gradient_checkpointing: true
attn_implementation: flash_attention_2
bf16: true
fsdp_version: 2
fsdp_config:
  auto_wrap_policy: TRANSFORMER_BASED_WRAP
  reshard_after_forward: true
"""


@pytest.mark.parametrize(
    ("text", "gpus", "is_said"),
    [
        (SPREAD, "8x h100-80gb", True),
        (SPREAD, "2n8x h100-80gb net=25Gb/s", False),
        (SPREAD, "8x l40s", False),
        (SPREAD.replace("adapter: lora\n", ""), "8x h100-80gb", False),
        (SPREAD.replace("fsdp_version: 2", "fsdp_version: 1"), "8x h100-80gb", False),
    ],
)
def test_expert_parallelism_is_named_for_adapters_where_deep_ep_may_run(make_run, text, gpus, is_said):
    """In words alone, with its package and the share that it would send: of one node, whose GPUs divide the experts."""
    said = network_words(Links(make_run(text, gpus), RULES))
    assert said.startswith("The ")
    assert ("`expert_parallel_size: 8`, with `deep_ep`" in said) == is_said
    assert not is_said or "of the bytes; no step writes it" in said


@pytest.mark.parametrize(("name", "size", "divides"), [("30B-A3B", 8, True), ("30B-A3B", 6, False), ("32B", 8, False)])
def test_experts_are_divided_into_equal_numbers(make_run, name, size, divides):
    model = make_run(SPREAD.replace("30B-A3B", name), "8x h100-80gb").model
    assert model is not None and divides_experts(model, size) == divides


@pytest.mark.parametrize(("rate", "is_said"), [("2e-4", True), ("1e-4", False), ("2e-5", False)])
def test_a_rate_that_is_far_off_is_told_before_what_is_faster(tmp_path, monkeypatch, rate, is_said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(FULL.replace("2e-5", rate))
    call = ["check", "--isolated", "--gpus", "8x h200", "run.yaml"]
    said = " ".join(CliRunner().invoke(main, call).output.split())
    line = f"`learning_rate: {rate}` (line 10) is 4 times above what is published: runs of all weights take 1e-6 to"
    assert (line in said) == is_said
    assert not is_said or said.index(line) < said.index("off the time")
    found = json.loads(CliRunner().invoke(main, [*call, "--output-format", "json"]).output)
    assert bool(found["runs"][0]["answer"]["rate"]) == is_said


@pytest.mark.parametrize(("rate", "is_said"), [("2e-6", True), ("4e-6", False)])
def test_a_rate_at_which_adapters_learn_nothing_is_told_first(make_run, rate, is_said):
    run = make_run(SPREAD.replace("30B-A3B", "8B") + f"learning_rate: {rate}\n", "8x h200")
    (hit,) = built_in_rules("lint")["learning-rate-unusual"].finds(run)
    assert (hit.level == "warning") == ("is 10 times below what is published: runs of LoRA" in hit.message) == is_said


@pytest.mark.parametrize(("gpus", "is_said"), [("2n8x h200", True), (CLUSTER, False), ("8x h200", False)])
def test_several_nodes_without_a_network_are_told_to_say_it(tmp_path, monkeypatch, gpus, is_said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(FULL)
    said = CliRunner().invoke(main, ["check", "--isolated", "--gpus", gpus, "run.yaml"]).output
    assert ("net=400Gb/s" in said) == is_said


def test_a_network_that_nobody_states_is_spoken_of_by_an_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(FULL + FSDP)

    def said(gpus: str) -> str:
        return " ".join(CliRunner().invoke(main, ["check", "--isolated", "--gpus", gpus, "run.yaml"]).output.split())

    share = re.search(r"The network takes (\d+%) of the step", said("4n8x h100-80gb net=100Gb/s"))
    assert share is not None
    assert f"With 100 Gb/s between nodes it takes {share[1]} of the step" in said("4n8x h100-80gb")


@pytest.mark.parametrize(
    ("line", "is_said"),
    [
        ("pad_to_sequence_len: true", True),
        ("pad_to_sequence_len: true  # advisor: ignore[pads-every-row]", False),
        ("", False),
    ],
)
def test_rows_that_are_padded_to_the_full_length_are_named_with_the_remedy(tmp_path, monkeypatch, line, is_said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(FULL.replace("sample_packing: true", line))
    call = ["check", "--isolated", "--gpus", "1x h200", "run.yaml"]
    said = " ".join(CliRunner().invoke(main, call).output.split())
    words = "a row of any length takes the time of 4,096 tokens; unless most rows are that long, "
    words += "`sample_packing: true` fills them, `false` here shortens them."
    assert (words in said) == is_said
    found = json.loads(CliRunner().invoke(main, [*call, "--output-format", "json"]).output)
    assert bool(found["runs"][0]["answer"]["padding"]) == is_said
