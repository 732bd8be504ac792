"""``check --validate``: what a library says is a finding at our line, and its own trouble never is our failure."""

import json
import os
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main
from advisor.schemas.validate import client
from advisor.schemas.validate.client import Library

YAML = """\
base_model: meta-llama/Llama-3.1-8B
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_target_linear: true
sequence_len: 2048
micro_batch_size: 1
gradient_checkpointing: true
attn_implementation: flash_attention_2
"""
JSON = """\
{
  "bf16": {"enabled": true},
  "train_batch_size": 2,
  "zero_optimization": {
    "stage": 1
  }
}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(text: str, *options: str, ds: str | None = None) -> Result:
    Path("run.yaml").write_text(text + ("" if ds is None else "deepspeed: ds.json\n"))
    if ds is not None:
        Path("ds.json").write_text(ds)
    command = ["check", "run.yaml", "--isolated", "--gpus", "2x h100-80gb", "--validate", *options]
    return CliRunner().invoke(main, command)


def said(text: str, *options: str, ds: str | None = None) -> list[dict[str, Any]]:
    """What the libraries said."""
    result = check(text, "--output-format", "json", *options, ds=ds)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    findings = json.loads(result.stdout)["runs"][0]["findings"]
    return [finding for finding in findings if finding["rule"].endswith("-says")]


def place(finding: dict[str, Any]) -> tuple[str, int, int]:
    at = finding["location"]
    return at["file"], at["line"], at["column"]


def test_an_accepted_config_gets_no_word(libraries: Path):
    assert said(YAML, ds=JSON) == []


def test_a_rejection_is_an_error_at_the_key_that_it_names_by_place():
    (found,) = said(YAML + "seed: 1\n")
    assert (found["rule"], found["level"], place(found)) == ("axolotl-says", "error", ("run.yaml", 6, 15))
    assert found["message"] == "axolotl 9.9 rejects `sequence_len`: too long"
    assert check(YAML + "seed: 1\n", "--select", "axolotl-says").exit_code == 1


@pytest.mark.slow
def test_a_rejection_is_at_the_key_that_its_words_name():
    (found,) = said(YAML + "seed: 2\n")
    assert place(found) == ("run.yaml", 7, 19)


def test_a_rejection_that_names_nothing_is_at_the_runs_own_place():
    (found,) = said(YAML + "seed: 3\n")
    assert (place(found), found["level"]) == (("run.yaml", 1, 13), "error")


@pytest.mark.slow
def test_axolotl_is_told_of_the_hardware():
    (found,) = said(YAML + "seed: 6\n")
    assert "on 2 GPUs of sm_90" in found["message"]


def test_deepspeed_speaks_of_the_json():
    (found,) = said(YAML, ds=JSON.replace('"stage": 1', '"stage": 1,\n    "stages": 2'))
    assert (found["rule"], found["level"], place(found)) == ("deepspeed-says", "error", ("ds.json", 6, 15))


def test_the_trainer_speaks_of_the_json_too():
    (found,) = said(YAML, ds=JSON.replace('"train_batch_size": 2', '"train_batch_size": 64'))
    assert place(found) == ("ds.json", 3, 23)
    assert "64" in found["message"] and "2" in found["message"]


def test_deepspeed_inside_the_yaml_is_judged_as_well():
    (found,) = said(YAML + "deepspeed:\n  zero_optimization:\n    stage: 1\n    stages: 2\n")
    assert place(found) == ("run.yaml", 13, 13)


@pytest.mark.slow
def test_a_plugin_that_is_not_installed_is_a_note():
    (found,) = said(YAML + "plugins: [good.Plugin, absent.Plugin]\n")
    assert (found["level"], "`absent.Plugin`" in found["message"]) == ("note", True)


def test_a_package_that_is_not_installed_is_no_rejection():
    (found,) = said(YAML + "seed: 5\n")
    assert (found["level"], "ring_flash_attn" in found["message"]) == ("note", True)


def test_a_process_that_dies_is_a_note_with_its_last_words():
    (found,) = said(YAML + "seed: 4\n")
    assert (found["level"], "a last word" in found["message"]) == ("note", True)
    assert check(YAML + "seed: 4\n", "--select", "axolotl-says").exit_code == 0


def test_a_library_that_cannot_be_imported_is_a_note(libraries: Path):
    (libraries / "axolotl/utils/config.py").write_text("import nothing_like_this")
    (found,) = said(YAML)
    assert (found["level"], "nothing_like_this" in found["message"]) == ("note", True)


@pytest.mark.slow
def test_a_process_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch):
    slow = Library("axolotl", "advisor.schemas.validate.ask_axolotl", limit_s=2)
    question = {"config": {"seed": 7}, "folder": ".", "capabilities": {}, "torch": "2.13.0"}
    assert slow.says(question) == {"trouble": "no answer within 2 s"}
    assert slow.says({**question, "config": {}}) == {"trouble": "no answer within 2 s"}


def test_a_library_that_is_not_installed_is_one_clear_error(monkeypatch: pytest.MonkeyPatch):
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(client, "version", version)
    result = check(YAML)
    assert result.exit_code == 2
    assert 'pip install "axolotl-advisor[axolotl]"' in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["axolotl", "importlib", "json"])
def test_a_folder_of_its_name_is_not_the_library(here: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    if name == "json":  # an empty entry is the working directory
        monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"] + os.pathsep)
    (here / name).mkdir()
    (here / name / "__init__.py").write_text("raise SystemExit('not this one')")
    assert said(YAML) == []


@pytest.mark.slow
def test_what_is_said_is_selected_ignored_and_suppressed_like_any_finding():
    bad = YAML + "seed: 1\n"
    assert said(bad, "--ignore", "axolotl-says") == []
    assert len(said(bad, "--select", "axolotl-says")) == 1
    assert said(bad.replace("2048", "2048  # advisor: ignore[axolotl-says] known")) == []


def test_what_is_written_is_judged_as_it_will_be():
    result = check(YAML.replace("2048", "262144") + "seed: 2\n", "--fix", "--output-format", "json")
    findings = json.loads(result.stdout)["runs"][0]["findings"]
    assert "axolotl-says" in {finding["rule"] for finding in findings}


def test_a_config_that_cannot_be_read_is_not_asked_about():
    result = check(YAML + "micro_batch_size: [\n")
    assert result.exit_code == 2 and "-says" not in result.output
