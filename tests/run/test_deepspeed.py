"""DeepSpeed configs: how "auto" and defaults are resolved, where the file lies, and where an edit lands."""

import json

import pytest
import yaml

from advisor.documents import Remove, Set, read
from advisor.opening import Context, open_configs, open_run
from advisor.run.build import edited
from advisor.run.deepspeed.edits import changes

LLAMA = "base_model: meta-llama/Llama-3.1-8B\n"  # hidden size 4096


def test_auto_becomes_what_transformers_makes_of_the_hidden_size(make_run):
    run = make_run(LLAMA + "deepspeed: deepspeed_configs/zero3_bf16.json\n", "8x a100-80gb")
    zero = run.zero
    assert zero is not None
    assert zero.reduce_bucket_size == 4096 * 4096
    assert zero.prefetch_bucket_size == int(0.9 * 4096 * 4096)
    assert zero.param_persistence_threshold == 40960
    assert (zero.max_live_parameters, zero.sub_group_size, zero.overlap_comm) == (0, 0, True)


def test_what_is_absent_is_deepspeeds_default_and_not_auto(make_run):
    zero = make_run(LLAMA, deepspeed='{"zero_optimization": {"stage": 2}}').zero
    assert zero is not None
    assert (zero.reduce_bucket_size, zero.overlap_comm, zero.offload_optimizer) == (500_000_000, False, "gpu")


def test_axolotls_zero2_offloads_the_optimizer(make_run):
    zero = make_run(LLAMA + "deepspeed: deepspeed_configs/zero2.json\n").zero
    assert zero is not None
    assert (zero.stage, zero.offload_optimizer, zero.force_cpu_adam) == (2, "cpu", True)


def test_zero_3_with_bf16_auto_is_loaded_in_fp32(make_run):
    auto = make_run(LLAMA + "deepspeed: deepspeed_configs/zero3.json\n").zero
    literal = make_run(LLAMA + "deepspeed: deepspeed_configs/zero3_bf16.json\n").zero
    assert auto is not None and literal is not None
    assert (auto.loads_fp32, literal.loads_fp32) == (True, False)


@pytest.mark.parametrize(
    ("trainer", "said", "fp32"),
    [("axolotl", "bf16: true\n", True), ("hf-trainer", "bf16: true\n", False), ("hf-trainer", "bf16: false\n", True)],
)
def test_auto_is_filled_in_before_the_model_is_built_outside_axolotl(trainer: str, said: str, fp32: bool):
    document = yaml.safe_load("base_model: Qwen/Qwen3-30B-A3B\nadapter: lora\nlora_r: 8\n" + said)
    auto = {"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}
    zero = open_configs(document, auto, "2x a100-40gb", stack={"trainer": trainer}).run.zero
    assert zero is not None and zero.loads_fp32 is fp32


def test_an_inline_mapping_is_read_and_edited_in_place(make_run):
    run = make_run(
        LLAMA + "deepspeed:\n  zero_optimization:\n    stage: 1\n  bf16:\n    enabled: true\n", "8x a100-80gb"
    )
    after = edited(run, {"zero_stage": 2}, "zero-2")
    assert after.zero_stage == 2
    assert (
        after.config.patched().decode()
        == LLAMA + "deepspeed:\n  zero_optimization:\n    stage: 2\n  bf16:\n    enabled: true\n"
    )


def test_a_file_of_the_runs_own_is_edited_in_place(tmp_path, make_run):
    (tmp_path / ".git").mkdir()
    run = make_run(LLAMA, "8x a100-80gb", '{"zero_optimization": {"stage": 1}, "bf16": {"enabled": true}}')
    after = edited(run, {"zero_stage": 2}, "zero-2")
    assert after.deepspeed is not None and after.config is run.config
    assert json.loads(after.deepspeed.document.patched())["zero_optimization"] == {"stage": 2}


def test_a_file_that_two_configs_name_is_copied(tmp_path, make_run):
    (tmp_path / "other.yaml").write_text(LLAMA + "deepspeed: ds.json\n")
    run = make_run(LLAMA, "8x a100-80gb", '{"zero_optimization": {"stage": 1}}')
    after = edited(run, {"zero_stage": 2}, "zero-2")
    assert after.deepspeed is not None
    assert after.deepspeed.file.endswith("config.zero-2.json")
    assert after.config["deepspeed"] == "config.zero-2.json"


def test_a_shipped_file_is_copied_and_never_made(make_run):
    run = make_run(LLAMA + "deepspeed: deepspeed_configs/zero1.json\n", "8x a100-80gb")
    after = edited(run, {"zero_stage": 2}, "zero-2")
    assert after.deepspeed is not None
    written = json.loads(after.deepspeed.document.patched())
    assert written["zero_optimization"] == {"stage": 2, "overlap_comm": True}
    assert after.config["deepspeed"] == "config.zero-2.json"


def test_a_fresh_config_says_what_it_means(make_run):
    after = edited(make_run(LLAMA, "8x a100-80gb"), {"zero_stage": 3}, "zero-3")
    assert after.deepspeed is not None and after.zero is not None
    written = json.loads(after.deepspeed.document.patched())
    assert written["bf16"] == {"enabled": True}
    assert written["train_batch_size"] == "auto"
    assert after.zero.max_live_parameters >= 2 * max(block.parameters for block in after.model.blocks)


def test_the_path_is_found_from_the_working_directory_before_the_yamls_folder(tmp_path):
    inner = tmp_path / "configs"
    inner.mkdir()
    (inner / "c.yaml").write_text(LLAMA + "deepspeed: z.json\n")
    (inner / "z.json").write_text('{"zero_optimization": {"stage": 1}}')
    context = Context(working_directory=str(tmp_path), gpus="2x a100-80gb")
    assert open_run(read(inner / "c.yaml"), context).run.zero_stage == 1
    (tmp_path / "z.json").write_text('{"zero_optimization": {"stage": 3}}')
    assert open_run(read(inner / "c.yaml"), context).run.zero_stage == 3


@pytest.mark.parametrize(("precision", "other"), [("bf16", "fp16"), ("fp16", "bf16")])
def test_zero_3_gets_its_dtype_outright_and_no_other(precision, other):
    """DeepSpeed refuses both: deepspeed/runtime/config.py:784-785@0.18.9."""
    values = {"zero_optimization": {"stage": 2}, other: {"enabled": "auto"}}
    made = changes(values, {"zero_stage": 3}, precision)
    assert Set(f"{precision}.enabled", True) in made
    assert Remove(other) in made


@pytest.mark.parametrize(
    ("name", "numbers", "is_editable"),
    [
        ("ours.json", "", True),
        ("zero2.json", "", False),
        ("zero3_bf16.json", "", False),
        ("zero2.json", ', "train_batch_size": "auto"', False),
        ("zero2.json", ', "train_batch_size": 16', True),
    ],
)
def test_a_json_as_axolotl_ships_it_is_nobodys_own(tmp_path, name, numbers, is_editable):
    (tmp_path / name).write_text(f'{{"zero_optimization": {{"stage": 2}}{numbers}}}')
    (tmp_path / "run.yaml").write_text(LLAMA + f"deepspeed: {name}\n")
    opened = open_run(read(tmp_path / "run.yaml"), Context(working_directory=str(tmp_path)))
    assert opened.run.deepspeed_editable is is_editable


@pytest.mark.parametrize(
    ("model", "live"), [("meta-llama/Llama-3.1-8B", 450_000_000), ("Qwen/Qwen2.5-72B", 1_800_000_000)]
)
def test_a_written_zero_3_leaves_two_layers_live(make_run, model, live):
    run = make_run(LLAMA.replace("meta-llama/Llama-3.1-8B", model), "8x a100-80gb")
    for before in (run, make_run(run.config.text, "8x a100-80gb", '{"zero_optimization": {"stage": 2}}')):
        after = edited(before, {"zero_stage": 3}, "zero-3")
        assert after.zero is not None and after.model is not None
        assert after.zero.max_live_parameters == live >= 2 * max(block.parameters for block in after.model.blocks)


def test_two_layers_of_experts_are_not_kept_live(make_run):
    after = edited(
        make_run(LLAMA.replace("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B"), "8x h100"), {"zero_stage": 3}, "x"
    )
    assert after.zero is not None and after.zero.max_live_parameters == 100_000_000


def test_a_limit_that_is_written_stays(make_run):
    written = '{"zero_optimization": {"stage": 2, "stage3_max_live_parameters": 5}}'
    after = edited(make_run(LLAMA, "8x a100-80gb", written), {"zero_stage": 3}, "x")
    assert after.zero is not None and after.zero.max_live_parameters == 5
