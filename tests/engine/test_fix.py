"""A fix keeps its word: a fresh check says what its report said, a second fix changes nothing, no error is new."""

import json
from pathlib import Path

import pytest

from advisor.documents import parse, read, write_all
from advisor.engine.check import check_run
from advisor.engine.examples import opened
from advisor.engine.fix import Fixed, fixed
from advisor.engine.fix_report import report_after
from advisor.engine.options import Options
from advisor.engine.registry import built_in_folder, built_in_rules
from advisor.engine.regression import AT_TIMES, error_rules, errors_but_memory, new_errors
from advisor.engine.rule import Rule
from advisor.engine.states import State
from advisor.engine.steps import best_step
from advisor.opening import Context, open_run
from advisor.run import Run
from advisor.run.build import edited

from ..promises import kept

LORA = "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
QLORA = LORA.replace("lora\n", "qlora\nload_in_4bit: true\n", 1)
AUTO = {"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}}
BATCH = {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}
ZERO_3 = {"zero_optimization": {"stage": 3, "overlap_comm": True}, **AUTO, **BATCH, "gradient_clipping": "auto"}
CASES: dict[str, tuple[str, str]] = {
    "full, float16": (
        "2x rtx-4090",
        "base_model: openlm-research/open_llama_3b_v2\nbf16: false\nfloat16: true\nmicro_batch_size: 2\n",
    ),
    "full, float16, V100": ("2x v100-32gb", "base_model: Qwen/Qwen2.5-7B\nbf16: false\nfloat16: true\n"),
    "full, fp16": ("4x v100-32gb", "base_model: Qwen/Qwen2.5-7B\nbf16: false\nfp16: true\n"),
    "full, bf16 emulated": ("1x t4", "base_model: Qwen/Qwen2.5-7B\nbf16: auto\nflash_attention: true\n"),
    "full, bf16 emulated, said outright": ("4x v100-32gb", "base_model: meta-llama/Llama-3.1-8B\nbf16: true\n"),
    "4 bits without adapter": ("1x rtx-4090", "base_model: meta-llama/Llama-3.1-8B\nload_in_4bit: true\n"),
    "4 bits without adapter, T4": ("1x t4", "base_model: microsoft/phi-2\nload_in_4bit: true\nmicro_batch_size: 8\n"),
    "LoRA with 4 bits": ("1x rtx-4090", f"base_model: meta-llama/Llama-3.1-8B\n{LORA}load_in_4bit: true\n"),
    "QLoRA, bf16 emulated": ("1x t4", f"base_model: meta-llama/Llama-3.1-8B\n{QLORA}flash_attention: true\n"),
    "QLoRA, half precision on the host": (
        "1x t4",
        f"base_model: Qwen/Qwen2.5-32B\n{QLORA}gradient_checkpointing: true\n",
    ),
    "QLoRA that refuses reentrant checkpoints": (
        "1x t4",
        f"base_model: google/gemma-4-31B\n{QLORA}gradient_checkpointing: true\nattn_implementation: flash_attention_2\n",
    ),
    "DPO, T4": ("1x t4", "base_model: Qwen/Qwen2.5-1.5B\nrl: dpo\nbf16: auto\nflash_attention: true\n"),
    "DPO, QLoRA, V100": ("2x v100-32gb", f"base_model: Qwen/Qwen2.5-14B\nrl: dpo\n{QLORA}sequence_len: 8192\n"),
    "no attention of that name": ("1x t4", "base_model: openai/gpt-oss-20b\nattn_implementation: flash_attention_2\n"),
    "model's key misspelt": ("1x h100-80gb", "base_modle: Qwen/Qwen2.5-7B\nsequence_len: 16384\n"),
    "shipped ZeRO-3": (
        "8x a100-40gb",
        "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 64\ndeepspeed: deepspeed_configs/zero3.json\n",
    ),
    "8-bit optimizer": (
        "8x a100-40gb",
        f"base_model: meta-llama/Llama-3.3-70B-Instruct\n{QLORA}optimizer: paged_adamw_32bit\n",
    ),
    "quantization-aware": ("1x rtx-4090", "base_model: Qwen/Qwen2.5-7B\nqat:\n  weight_dtype: int4\n"),
    "quantized checkpoint": (
        "1x rtx-4090",
        f"base_model: mistralai/Mixtral-8x7B-v0.1\n{LORA}model_quantization_config: Mxfp4Config\n",
    ),
    "experts": ("1x rtx-4090", f"base_model: Qwen/Qwen3-30B-A3B\n{QLORA}"),
}


def in_folder(folder: Path, yaml: str, deepspeed: dict[str, object] | None = None, others: int = 0) -> Path:
    """A config on disk, its JSON if there is one, and others that name the same JSON."""
    names = ["run.yaml", *(f"other{number}.yaml" for number in range(others))]
    for name in names:
        (folder / name).write_text(yaml, encoding="utf-8")
    if deepspeed is not None:
        (folder / "ds.json").write_text(json.dumps(deepspeed, indent=2) + "\n", encoding="utf-8")
    return folder / "run.yaml"


def fix(file: Path, gpus: str, *, unsafe: bool = True, options: Options | None = None) -> Fixed:
    """The fix of a file, written."""
    result = fixed(open_run(read(file), Context(gpus=gpus)), options or Options(), unsafe=unsafe)
    write_all(result.files())
    return result


@pytest.mark.parametrize("way", ["safe", "unsafe", "unsafe, pytorch"])
@pytest.mark.parametrize("name", CASES)
def test_every_promise_of_a_fix_holds(tmp_path: Path, name: str, way: str):
    gpus, yaml = CASES[name]
    options = Options(flowchart="pytorch" if "pytorch" in way else "default")
    assert kept(in_folder(tmp_path, yaml), Context(gpus=gpus), options, unsafe=way != "safe").broken == {}


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 1], ids=["its own JSON", "a shared JSON"])
@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("gpus", ["1x t4", "2x rtx-4090", "8x a100-40gb"])
@pytest.mark.parametrize("without", ["", "gradient_clipping", "bf16"])
def test_a_copied_json_has_the_fixes_of_lint_rules(tmp_path: Path, others: int, unsafe: bool, gpus: str, without: str):
    deepspeed = {key: value for key, value in ZERO_3.items() if key != without}
    yaml = "base_model: meta-llama/Llama-3.1-8B\nbf16: true\nmicro_batch_size: 8\ndeepspeed: ds.json\n"
    file = in_folder(tmp_path, yaml, deepspeed, others)
    assert kept(file, Context(gpus=gpus), Options(), unsafe=unsafe).broken == {}


def test_a_copy_of_a_shared_json_says_its_dtype_outright(tmp_path: Path):
    yaml = "base_model: meta-llama/Llama-3.1-8B\nbf16: true\ndeepspeed: ds.json\n"
    file = in_folder(tmp_path, yaml, ZERO_3, others=1)
    result = fix(file, "4x rtx-4090", unsafe=False)
    (copied,) = tmp_path.glob("run.*.json")
    assert Path(str(read(file)["deepspeed"])).name == copied.name
    copy = json.loads(copied.read_text(encoding="utf-8"))
    assert copy["bf16"]["enabled"] is True
    assert "zero3-loads-fp32" in {finding.rule for finding in result.done}


def test_the_report_after_a_fix_is_of_the_json_that_is_named_now(tmp_path: Path):
    file = in_folder(tmp_path, CASES["shipped ZeRO-3"][1])
    result = fix(file, "8x h200")
    assert read(file)["deepspeed"] == "deepspeed_configs/zero3_bf16.json"
    assert "zero3-loads-fp32" not in {finding.rule for finding in report_after(result, Options()).findings}


def test_a_step_that_would_stop_the_run_is_not_taken(tmp_path: Path):
    """`float16: true` asks the trainer for no mixed precision, and so goes with no JSON that does."""
    gpus, yaml = CASES["full, float16"]
    file = in_folder(tmp_path, yaml)
    options = Options(safe_only=True, ignore=("fsdp-2",))
    fix(file, gpus, unsafe=False, options=options)
    assert "deepspeed" not in read(file)
    report = check_run(open_run(read(file), Context(gpus=gpus)), options)
    reasons = {skipped.rule: skipped.reason for skipped in report.skipped}
    assert reasons["zero-2"] == "would stop the run: precision-mismatch"


def test_the_lora_step_writes_qlora_where_four_bits_are_asked_for(tmp_path: Path):
    gpus, yaml = CASES["4 bits without adapter"]
    file = in_folder(tmp_path, yaml)
    result = fix(file, gpus)
    assert "lora" in {finding.rule for finding in result.done}
    assert read(file)["adapter"] == "qlora"


def test_errors_count_whatever_a_call_selects(tmp_path: Path):
    gpus, yaml = CASES["full, float16"]
    file = in_folder(tmp_path, yaml)
    assert not fix(file, gpus, unsafe=False, options=Options(select=("does-not-fit",), ignore=("fsdp-2",))).plan
    assert "deepspeed" not in read(file)


DATA = "learning_rate: 2e-4\ndatasets: [{path: tatsu-lab/alpaca, type: alpaca}]\n"


def run_of(yaml: str, gpus: str) -> Run:
    return open_run(parse(yaml.encode(), "config.yaml", "yaml"), Context(gpus=gpus)).run


def test_an_error_more_of_the_same_rule_is_new():
    one = run_of(f"base_model: Qwen/Qwen2.5-7B\n{DATA}", "1x h200")
    worse = edited(one, {"adapter": "lora"}, "step")
    assert errors_but_memory(one).total() == 0
    assert new_errors(one, worse) == ["lora-without-rank-or-targets"]
    assert new_errors(worse, one) == []


@pytest.mark.parametrize(("size", "added"), [(200_000_001, ["allgather-bucket-no-effect"]), (200_000_000, [])])
def test_an_error_of_a_rule_that_mostly_finds_notes_is_new(tmp_path: Path, size: int, added: list[str]):
    found: list[Run] = []
    for name, bucket in (("one", 300_000_000), ("other", size)):
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"zero_optimization": {"stage": 2, "allgather_bucket_size": bucket}})
        )
        config = parse(f"base_model: Qwen/Qwen2.5-7B\n{DATA}deepspeed: {name}.json\n".encode(), "run.yaml", "yaml")
        found.append(open_run(config, Context(gpus="8x h200", working_directory=str(tmp_path))).run)
    assert new_errors(*found) == added


OF_GPUS = {"vllm-server-gpus"}
"""Its error is about the GPUs that this host has, and keys that no edit of a fix or a plan touches."""


def test_every_rule_of_a_lower_level_that_may_find_an_error_is_asked_after_an_edit():
    lower = [rule.id for rule in built_in_rules("lint").values() if rule.level != "error"]
    texts = {id_: (built_in_folder() / "lint" / f"{id_.replace('-', '_')}.py").read_text("utf-8") for id_ in lower}
    assert {id_ for id_, text in texts.items() if '"error"' in text} == AT_TIMES | OF_GPUS


def test_what_does_not_fit_is_left_to_the_verdict_where_memory_does_not_count():
    one = run_of("base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\n", "1x a100-80gb")
    larger = edited(one, {"micro_batch_size": 512}, "step")
    assert new_errors(one, larger) == ["does-not-fit"]
    assert new_errors(one, larger, memory=False) == []


def test_an_alternative_that_adds_an_error_gives_way_to_another():
    start = State(run_of("base_model: Qwen/Qwen2.5-7B\n", "1x rtx-4090"))
    alone, whole = {"adapter": "lora"}, {"adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_targets": "linear"}
    rule = Rule(id="step", stage="fit", title="", why="", source="", examples=(), edits=lambda run: [alone, whole])
    step = best_step(rule, start)
    assert getattr(step, "edits", None) == whole


def test_every_rule_that_finds_errors_in_its_examples_is_asked_for_them(tmp_path: Path):
    for rule in built_in_rules("lint").values():
        for number, example in enumerate(rule.expanded):
            folder = tmp_path / f"{rule.id}-{number}"
            folder.mkdir()
            run = opened(example, folder).run
            if any((hit.level or rule.level) == "error" for hit in rule.finds(run)):
                assert rule in error_rules(run), rule.id


def test_a_plan_that_the_text_has_no_place_for_is_not_written(tmp_path: Path):
    """Keys after a complex one cannot be edited; the rest of the check goes on."""
    file = in_folder(tmp_path, "? complex\n" + CASES["full, float16"][1])
    for unsafe in (False, True):
        assert fix(file, "1x rtx-4090", unsafe=unsafe).plan is None


def test_a_deepspeed_mapping_that_gets_its_name_is_judged_as_a_fresh_run_would(tmp_path: Path):
    file = in_folder(tmp_path, "base_model: meta-llama/Llama-3.1-8B\ndeepspeeed: {}\n")
    assert kept(file, Context(gpus=""), Options(), unsafe=True).broken == {}


def test_offloading_is_fixed_once_in_a_model_whose_layers_are_never_checkpointed(tmp_path: Path):
    yaml = "base_model: moonshotai/Kimi-Linear-48B-A3B-Instruct\nactivation_offloading: true\nsequence_len: 4096\n"
    done = [finding.rule for finding in fix(in_folder(tmp_path, yaml), "2x rtx-4090", unsafe=False).done]
    assert done.count("activation-offloading-without-checkpointing") == 1
