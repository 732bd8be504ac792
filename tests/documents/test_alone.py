"""A DeepSpeed JSON on the command line: through the YAMLs that name it, else alone."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.documents import read
from advisor.engine.lint import lint_hits
from advisor.engine.options import Options
from advisor.engine.registry import built_in_rules
from advisor.opening import Context, open_json, open_run
from advisor.run.stack import read_stack

MODEL = "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\n"
FAULTY = """\
{
  "zero_optimization": {"stage": 2, "overlap_com": true, "sub_group_size": "auto", "offload_param": {"device": "cpu"}},
  "allgather_bucket_size": 1,
  "gradient_cliping": 1.0,
  "train_micro_batch_size_per_gpu": "auto"
}
"""
ALONE = ["deepspeed-auto-ignored", "deepspeed-ignored-key", "deepspeed-unknown-key", "offload-param-below-stage-3"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zero.json").write_text(FAULTY)
    return tmp_path


def check(*arguments: str):
    return CliRunner().invoke(main, ["check", "--isolated", *arguments])


def runs(*arguments: str) -> dict[str, list[str]]:
    """The rules that spoke of each file."""
    report = json.loads(check(*arguments, "--output-format", "json").stdout)
    return {run["file"]: sorted({found["rule"] for found in run["findings"]}) for run in report["runs"]}


@pytest.mark.parametrize("path", ["zero.json", "."])
def test_a_json_that_no_yaml_names_is_linted_alone(folder: Path, path: str):
    (folder / "other.yaml").write_text(MODEL)
    result = check(path, "--output-format", "concise")
    assert result.exit_code == 1
    assert [rule for rule in ALONE if f"[{rule}]" in result.stdout] == ALONE
    assert "zero.json:2:37: error[deepspeed-unknown-key]" in result.stdout


def test_a_sound_json_alone_has_no_findings_and_no_verdict(folder: Path):
    (folder / "zero.json").write_text('{"zero_optimization": {"stage": 3}, "train_batch_size": "auto"}')
    result = check("zero.json", "--gpus", "8x h100-80gb", "--fail-on", "note")
    assert (result.exit_code, result.stdout) == (0, "zero.json: no findings\n")


def test_a_json_that_a_yaml_names_is_checked_through_it_alone(folder: Path):
    (folder / "run.yaml").write_text(MODEL + "deepspeed: zero.json\n")
    found = runs(".", "--gpus", "8x h100-80gb")
    assert list(found) == ["./run.yaml"]
    assert set(ALONE) <= set(found["./run.yaml"])


def test_a_json_that_two_yamls_name_is_spoken_of_once(folder: Path):
    for name in ("one.yaml", "two.yaml"):
        (folder / name).write_text(MODEL + "deepspeed: zero.json\n")
    found = runs("one.yaml", "two.yaml", "zero.json")
    assert set(ALONE) <= set(found["one.yaml"])
    assert not set(ALONE) & set(found["two.yaml"])


def test_a_value_of_a_wrong_type_is_one_error_however_many_name_the_file(folder: Path):
    (folder / "zero.json").write_text('{\n "zero_optimization": {"stage": "three"}\n}')
    for name in ("one.yaml", "two.yaml"):
        (folder / name).write_text(MODEL + "deepspeed: zero.json\n")
    alone, together = check("zero.json"), check(".")
    assert alone.exit_code == together.exit_code == 1
    assert "error 2  " in alone.stdout and "zero.json: " in alone.stdout
    assert together.stdout.count("[unreadable-value]") == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "x", "version": 1}',
        '[{"zero_optimization": 1}]',
        '{"architectures": ["LlamaForCausalLM"], "hidden_size": 64}',
        '{"per_device_train_batch_size": 1, "bf16": true, "gradient_accumulation_steps": 4}',
        "{ // a comment\n}",
        "",
    ],
)
@pytest.mark.parametrize("path", ["zero.json", "."])
def test_other_jsons_are_passed_over(folder: Path, path: str, text: str):
    (folder / "zero.json").write_text(text)
    result = check(path)
    assert result.exit_code == 0 and "nothing to check" in result.stderr


def test_a_deepspeed_json_that_does_not_parse_is_an_error_at_its_line(folder: Path):
    (folder / "zero.json").write_text('{"zero_optimization": {\n "stage": 2,,\n}}')
    result = check(".")
    assert result.exit_code == 2 and "zero.json:2:13" in result.stderr


def test_fix_mends_a_json_alone(folder: Path):
    assert check("zero.json", "--fix", "--unsafe-fixes").exit_code == 0
    values = json.loads((folder / "zero.json").read_text())
    assert "overlap_comm" in values["zero_optimization"] and "gradient_clipping" in values
    assert "offload_param" not in values["zero_optimization"]


def test_fix_leaves_a_json_that_two_yamls_share(folder: Path):
    for name in ("one.yaml", "two.yaml"):
        (folder / name).write_text(MODEL + "deepspeed: zero.json\n")
    result = check("zero.json", "--fix", "--unsafe-fixes")
    assert result.exit_code == 1 and (folder / "zero.json").read_text() == FAULTY


def test_output_dir_gets_the_patched_json_or_a_copy(folder: Path):
    assert check("zero.json", "--fix", "--unsafe-fixes", "--output-dir", "out").exit_code == 0
    assert (folder / "zero.json").read_text() == FAULTY
    assert "overlap_comm" in (folder / "out" / "zero.json").read_text()
    sound = '{"zero_optimization": {"stage": 3}, "train_batch_size": "auto"}'
    (folder / "zero.json").write_text(sound)
    assert check("zero.json", "--fix", "--output-dir", "out").exit_code == 0
    assert (folder / "out" / "zero.json").read_text() == sound


def test_settings_can_keep_a_rule_quiet_for_a_json(folder: Path):
    (folder / "advisor.toml").write_text('[per-file-ignores]\n"*.json" = ["deepspeed-unknown-key"]\n')
    result = CliRunner().invoke(main, ["check", "zero.json"])
    assert "deepspeed-unknown-key" not in result.stdout and "deepspeed-ignored-key" in result.stdout


def test_one_of_axolotls_own_files_is_spoken_of_at_its_line(folder: Path):
    (folder / "zero.json").rename(folder / "zero2.json")
    result = check("zero2.json", "--output-format", "concise")
    assert "zero2.json:2:37: error[deepspeed-unknown-key]" in result.stdout
    assert "[!]" not in result.stdout


def test_the_memory_of_a_json_alone_is_no_question(folder: Path):
    result = CliRunner().invoke(main, ["estimate", "zero.json", "--gpus", "1x t4"])
    assert result.exit_code == 2 and "is not an axolotl config" in result.stderr


@pytest.mark.parametrize("rule", [rule for rule in built_in_rules("lint").values() if rule.alone], ids=lambda r: r.id)
def test_a_rule_that_speaks_of_a_json_alone_says_the_same_through_a_yaml(folder: Path, rule):
    # A variable in the YAML is no matter of its JSON.
    for number, example in enumerate(one for one in rule.expanded if "${" not in one.before):
        text = example.deepspeed or "{}"
        (folder / f"{number}.json").write_text(text)
        (folder / "run.yaml").write_text(
            example.before.replace("                ", "") + f"\ndeepspeed: {number}.json\n"
        )
        stack = read_stack(example.stack)
        alone = open_json(read(f"{number}.json"), Context(stack=stack))
        through = open_run(read("run.yaml"), Context(gpus=example.gpus, stack=stack))
        said = [
            [(hit.at, hit.message, hit.level) for each, hit in lint_hits(opened.run, Options()) if each.id == rule.id]
            for opened in (alone, through)
        ]
        assert said[0] == said[1] and bool(said[0]) == example.expects_finding
