"""A finding whose edit changes the YAML and its DeepSpeed JSON together."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main

RUN = """\
base_model: mistralai/Mistral-7B-v0.1
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 4
num_epochs: 1
learning_rate: 0.0002
bf16: true
attn_implementation: sdpa
gradient_checkpointing: true
deepspeed: ds.json
"""
JSON = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": "auto"}
CALL = ["check", "--gpus", "4x v100-32gb", "--isolated"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(RUN)
    (tmp_path / "ds.json").write_text(json.dumps(JSON, indent=2))
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, [*CALL, *words, "run.yaml"])
    return result.exit_code, result.output


def test_both_are_written_and_a_second_time_nothing(folder: Path):
    assert run("--fix", "--unsafe-fixes")[0] == 0
    yaml, ds = (folder / "run.yaml").read_text(), json.loads((folder / "ds.json").read_text())
    assert "bf16: false\nfp16: true\n" in yaml
    assert (ds["bf16"], ds["fp16"]) == ({"enabled": "auto"}, {"enabled": "auto"})
    before = [(folder / name).read_bytes() for name in ("run.yaml", "ds.json")]
    run("--fix", "--unsafe-fixes")
    assert [(folder / name).read_bytes() for name in ("run.yaml", "ds.json")] == before


def test_json_has_the_edits_of_both_files_and_the_prompt_one_question(folder: Path):
    found = json.loads(run("--output-format", "json")[1])["runs"][0]["findings"]
    (fix,) = (each["fix"] for each in found if each["rule"] == "bf16-unsupported")
    assert {edit["file"] for edit in fix["edits"]} == {"run.yaml", "ds.json"}


def test_a_json_that_others_share_leaves_both_as_they_are(folder: Path):
    (folder / "other.yaml").write_text(RUN)
    found = json.loads(run("--output-format", "json", "other.yaml")[1])["runs"]
    fixes = [each["fix"] for one in found for each in one["findings"] if each["rule"] == "bf16-unsupported"]
    assert fixes and all(fix is None or {e["file"] for e in fix["edits"]} != {"ds.json"} for fix in fixes)
