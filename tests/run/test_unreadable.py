"""One value that cannot be read hides nothing else; variables and templates are taken for what they are."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import advisor
from advisor.cli.main import main
from advisor.errors import InputError

CONFIG = (
    "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nadapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_target_linear: true\n"
    "learning_rate: 2e-4\ndatasets: [{path: tatsu-lab/alpaca, type: alpaca}]\n"
)
JSON = '{\n "zero_optimization": {"stage": 2},\n "train_micro_batch_size_per_gpu": "auto"\n}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", "--isolated", "--gpus", "2x a100-40gb", *arguments])


def run_of(*arguments: str) -> dict[str, Any]:
    return json.loads(check("--output-format", "json", *arguments).stdout)["runs"][0]


def said_of(run: dict[str, Any], rule: str) -> list[tuple[str, int, str]]:
    return [
        (found["level"], found["location"]["line"], found["location"]["file"])
        for found in run["findings"]
        if found["rule"] == rule
    ]


@pytest.mark.parametrize(
    "line",
    [
        "gradient_checkpointing: unsloth",
        "fp16: auto",
        "micro_batch_size: two",
        "micro_batch_size: [1, 2]",
        "micro_batch_size: 0",
        "lora_dropout: much",
        "fsdp_config: 3",
    ],
)
def test_one_value_that_cannot_be_read_is_an_error_at_its_line_and_hides_nothing(folder: Path, line: str):
    (folder / "run.yaml").write_text(f"{CONFIG}{line}\nepochs: 3\n")
    result = check("run.yaml")
    run = run_of("run.yaml")
    errors = [found for found in run["findings"] if found["level"] == "error" and found["location"]["line"] == 9]
    assert result.exit_code == 1 and len(errors) == 1
    assert (run["verdict"], run["memory"]) == ("unknown", None)
    assert said_of(run, "unknown-key") == [("warning", 10, "run.yaml")]


@pytest.mark.parametrize("value", ["9", '"two"', "null", "1.5"])
def test_so_is_one_of_the_deepspeed_json(folder: Path, value: str):
    (folder / "run.yaml").write_text(CONFIG + "deepspeed: ds.json\nepochs: 3\n")
    (folder / "ds.json").write_text(JSON.replace('"stage": 2', f'"stage": {value}'))
    run = run_of("run.yaml")
    if value == "null":
        assert run["verdict"] == "fits"
        return
    errors = {(f["location"]["file"], f["location"]["line"]) for f in run["findings"] if f["level"] == "error"}
    assert errors == {("ds.json", 2)} and run["verdict"] == "unknown" and run["memory"] is None
    assert said_of(run, "unknown-key")


def test_a_variable_is_a_note_and_only_what_memory_depends_on_takes_the_verdict(folder: Path):
    (folder / "run.yaml").write_text(CONFIG + "output_dir: ${OUT}\n")
    run = run_of("run.yaml")
    assert said_of(run, "unreadable-value") == [("note", 9, "run.yaml")] and run["verdict"] == "fits"
    (folder / "run.yaml").write_text(CONFIG + 'micro_batch_size: ${MICRO}\nbf16: "{{ bf16 }}"\n')
    run = run_of("run.yaml")
    assert said_of(run, "unreadable-value") == [("note", 9, "run.yaml"), ("note", 10, "run.yaml")]
    assert run["verdict"] == "unknown" and check("run.yaml").exit_code == 0


def test_what_depends_on_a_variable_is_not_reported(folder: Path):
    (folder / "run.yaml").write_text(CONFIG.replace("adapter: lora", "adapter: ${ADAPTER}") + "load_in_4bit: true\n")
    assert {found["level"] for found in run_of("run.yaml")["findings"]} == {"note"}
    (folder / "run.yaml").write_text(CONFIG + "deepspeed: ${DEEPSPEED}\n")
    assert said_of(run_of("run.yaml"), "missing-deepspeed-file") == []
    (folder / "run.yaml").write_text("base_model: ${MODEL}\nsequence_len: 8\n")
    run = run_of("run.yaml")
    assert said_of(run, "unknown-model") == [] and run["verdict"] == "unknown"


def test_a_variable_in_a_deepspeed_json_is_one_too(folder: Path):
    (folder / "run.yaml").write_text(CONFIG + "deepspeed: ds.json\n")
    (folder / "ds.json").write_text(JSON.replace('"stage": 2', '"stage": "${STAGE}"'))
    run = run_of("run.yaml")
    assert said_of(run, "unreadable-value") == [("note", 2, "ds.json")] and run["verdict"] == "unknown"
    assert not [found for found in run["findings"] if found["level"] == "error"]


@pytest.mark.parametrize(("line", "kernel"), [('xformers_attention: ""', "sdpa"), ("flash_attention: auto", "flash")])
def test_an_old_attention_flag_is_whatever_python_takes_it_for(make_run, line: str, kernel: str):
    """axolotl asks for truth alone, and drops the flag before it looks at types."""
    run = make_run(f"{CONFIG}{line}\n")
    assert (run.unreadable, run.attention) == ((), kernel)


def test_prompts_with_braces_are_no_variables(folder: Path):
    text = 'datasets:\n  - path: a/b\n    type:\n      format: "{{ instruction }}"\n'
    config = CONFIG.partition("datasets")[0]
    (folder / "run.yaml").write_text(config + text + 'chat_template_jinja: "{{ messages }}"\n')
    assert said_of(run_of("run.yaml"), "unreadable-value") == []


@pytest.mark.parametrize(
    "text",
    [
        "base_model: {{ model }}\nmicro_batch_size: {{ micro }}\n",
        "base_model: a/b\n{% if packing %}\nsample_packing: true\n{% endif %}\n",
    ],
)
def test_a_template_is_a_note_in_a_folder_and_an_error_by_name(folder: Path, text: str):
    (folder / "run.yaml").write_text(CONFIG)
    (folder / "template.yaml").write_text(text)
    for options in ((), ("--fix",), ("--diff",)):
        found = check(*options, ".")
        assert found.exit_code == 0 and "note: is a template" in found.stderr
    with_json = folder / "ds.json"
    with_json.write_text('{"zero_optimization": {"stage": {{ stage }}}}')
    assert check(".").exit_code == 0 and check(".").stderr.count("note: is a template") == 2
    piped = CliRunner().invoke(main, ["check", "-"], input=text)
    assert piped.exit_code == 2 and "is a template" in piped.stderr
    named = check("template.yaml")
    assert named.exit_code == 2 and "is a template" in named.stderr and "render it" in named.stderr


def test_what_is_no_template_keeps_its_own_error(folder: Path):
    (folder / "run.yaml").write_text('base_model: [\nformat: "{{ x }}"\n')
    result = check(".")
    assert result.exit_code == 2 and "template" not in result.stderr


@pytest.mark.parametrize(
    "text",
    ["learning_rate: [1.0e-4, 2.0e-4]\nbase_model: [a/b, c/d]\n", "_:\n  - {adapter: lora}\nbase_model: [a/b]\n"],
)
def test_a_sweep_is_a_note_in_a_folder_and_an_error_by_name(folder: Path, text: str):
    (folder / "sweep.yaml").write_text(text)
    found, named = check("."), check("sweep.yaml")
    assert found.exit_code == 0 and "is a sweep" in found.stderr
    assert named.exit_code == 2 and "is a sweep" in named.stderr


def test_a_blank_model_is_an_error_at_its_line(folder: Path):
    (folder / "run.yaml").write_text("datasets: []\nbase_model:\n")
    (folder / "other.yaml").write_text("base_model:\nkind: Deployment\n")
    result = check("--output-format", "concise", ".")
    assert result.exit_code == 1 and "run.yaml:2:1: error" in result.stdout and "other.yaml" not in result.stdout
    assert check("--fix", "run.yaml").exit_code == 1
    assert (folder / "run.yaml").read_text() == "datasets: []\nbase_model:\n"


def test_python_is_told_which_value_it_is():
    with pytest.raises(InputError, match="`micro_batch_size: two` must be an integer"):
        advisor.estimate({"base_model": "Qwen/Qwen2.5-7B", "micro_batch_size": "two"}, gpus="1x rtx-4090")
