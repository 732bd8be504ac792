"""The way back: the sequence that is fastest, none that gains little, all of it the same training."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.documents import read
from advisor.engine.check import check_run
from advisor.engine.fix import fixed
from advisor.engine.options import Options, room_rules
from advisor.engine.speedups import GAIN, offers, sequence
from advisor.engine.states import State, loses_masters
from advisor.opening import Context, open_run

BASE = """
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
learning_rate: 2e-5
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 16
sample_packing: true
gradient_checkpointing: true
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
"""
LORA = BASE + "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
STAGE_3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'


def check(file, *options):
    return CliRunner().invoke(main, ["check", "--isolated", str(file), *options])


def sequence_of(run):
    return sequence(State(run), room_rules(Options()))


def test_a_sequence_is_faster_fits_and_trains_the_same(make_run):
    for text, gpus, deepspeed in (
        (LORA, "1x a100-80gb", None),
        (BASE, "8x h100", STAGE_3),
        (LORA, "4x rtx-4090 link=pcie", STAGE_3),
    ):
        run = make_run(text, gpus, deepspeed=deepspeed)
        steps = sequence_of(run)
        end = steps[-1].after
        assert end.seconds <= GAIN * State(run).seconds and end.verdict == "fits"
        assert all(step.safe for step in steps) and not loses_masters(run, end.run)
        assert end.run.global_batch_size == run.global_batch_size
        assert all(one.after.needed == other.before.needed for one, other in pairwise(steps))


def test_checkpoints_go_before_the_room_is_spent_on_a_batch_that_gains_nothing(make_run):
    """On one card with 2k tokens the batch gains nothing, and used to take the room that checkpoints need."""
    assert "no-checkpointing" in [step.rule.id for step in sequence_of(make_run(LORA, "1x a100-80gb"))]


def test_adapters_leave_deepspeed_and_full_fine_tunes_do_not(make_run):
    adapters = sequence_of(make_run(LORA, "4x a100-80gb link=pcie", deepspeed=STAGE_3))
    assert adapters[-1].after.run.zero_stage < 3
    full = sequence_of(make_run(BASE, "8x h100", deepspeed=STAGE_3))
    assert full[-1].after.run.zero is not None


def test_offload_is_given_up_together_with_the_sharding_that_it_needs(make_run):
    host = '{"device": "cpu"}'
    offloaded = STAGE_3.replace('"stage": 3', f'"stage": 3, "offload_optimizer": {host}, "offload_param": {host}')
    padded = LORA.replace("2048", "4096").replace("sample_packing: true", "pad_to_sequence_len: true")
    steps = sequence_of(make_run(padded, "8x h200", deepspeed=offloaded))
    end = steps[-1].after
    assert [step.rule.id for step in steps][:2] == ["less-offload", "lower-zero-stage"]
    assert end.host_peak == 0 and end.run.zero_stage < 3 and not end.estimate.has_little_room


def test_what_gains_little_is_no_sequence(make_run):
    fast = make_run(LORA.replace("gradient_checkpointing: true\n", ""), "1x b200")
    steps = sequence_of(fast)
    assert not steps or steps[-1].after.seconds <= GAIN * State(fast).seconds


@pytest.mark.parametrize(("left", "gains"), [(0.94, True), (0.96, False)])
def test_a_sequence_leaves_no_more_than_95_percent_of_the_time(make_run, left: float, gains: bool):
    """The start is said to take as long as makes the same end leave so much."""
    run = make_run(LORA, "1x a100-80gb")
    start = State(run)
    vars(start)["seconds"] = sequence_of(run)[-1].after.seconds / left
    assert bool(sequence(start, room_rules(Options()))) == gains


def test_other_offers_stay_single(make_run):
    run = make_run(LORA.replace("sample_packing: true\n", ""), "1x a100-80gb")
    assert [step.rule.id for step in offers(State(run), room_rules(Options()).values())] == ["packing"]


def test_faster_writes_the_sequence_once(tmp_path: Path):
    file = tmp_path / "run.yaml"
    file.write_text(LORA, encoding="utf-8")
    context = Context(gpus="1x a100-80gb", working_directory=str(tmp_path))

    def report():
        return open_run(read(file), context)

    before = check_run(report(), Options())
    assert before.room is not None
    result = fixed(report(), Options(faster=True), unsafe=False)
    assert {finding.rule for finding in result.done} >= {"no-checkpointing"}
    for name, content in result.files().items():
        Path(name).write_bytes(content)
    after = check_run(report(), Options())
    assert after.estimate is not None and after.estimate.needed.low == before.room.after
    assert after.room is None
    assert not fixed(report(), Options(faster=True), unsafe=False).done


def test_faster_without_gpus_or_a_known_model_fixes_the_rest(tmp_path: Path):
    file = tmp_path / "run.yaml"
    for text in (LORA, LORA.replace("meta-llama/Llama-3.1-8B", "nobody/nothing")):
        for options in (("--diff",), ("--fix",)):
            file.write_text(text + "batch_size: 16\n", encoding="utf-8")
            gpus = () if "meta-llama" in text else ("--gpus", "1x a100-80gb")
            result = check(file, *options, *gpus, "--faster")
            assert result.exit_code in (0, 1), result.output
            assert "-batch_size" in result.output if options == ("--diff",) else "\nbatch_size" not in file.read_text()


def test_the_screen_says_where_the_room_leads(tmp_path: Path):
    file = tmp_path / "run.yaml"
    file.write_text(LORA, encoding="utf-8")
    output = check(file, "--gpus", "1x a100-80gb").output
    said = r"1 edit takes 30% off the time, same training; it then needs [\d.]+ GiB: add --fix --faster"
    assert re.search(said, " ".join(output.split()))


def test_faster_alone_is_refused(tmp_path: Path):
    file = tmp_path / "run.yaml"
    file.write_text(LORA, encoding="utf-8")
    result = check(file, "--gpus", "1x a100-80gb", "--faster")
    assert result.exit_code == 2 and "add --fix or --diff" in result.output
