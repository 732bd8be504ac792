"""Flowcharts of one's own: in the settings, in a file, and what is wrong with them."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main

RUN = """\
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
learning_rate: 2e-5
sequence_len: 4096
micro_batch_size: 2
gradient_accumulation_steps: 4
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
"""
TIERS = """
[[ours]]
name = "adapters first"
steps = ["smaller-micro-batch", "gradient-checkpointing", "lora"]

[[ours]]
name = "the rest"
steps = ["zero-3"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run.yaml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*options: str) -> Result:
    return CliRunner().invoke(
        main, ["check", "run.yaml", "--gpus", "8x a100-40gb", "--output-format", "concise", *options]
    )


def test_a_file_holds_one_flowchart(folder: Path):
    (folder / "ours.toml").write_text(TIERS)
    output = check("--flowchart", "ours.toml").output
    assert "note[lora]" in output and "zero-3" not in output


def test_the_settings_hold_flowcharts_by_name(folder: Path):
    (folder / "advisor.toml").write_text('flowchart = "ours"\n[flowcharts]\nours = ["smaller-micro-batch", "zero-3"]\n')
    assert "note[zero-3]" in check().output
    assert "note[zero-3]" in check("--flowchart", "ours").output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('ours = ["zero-33"]', "the flowchart `ours` has an unknown step `zero-33`"),
        ('ours = ["zero-3", "zero-3"]', "the flowchart `ours` has the step `zero-3` twice"),
        ('default = ["zero-3"]', "has the name of one of the advisor's own"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(folder: Path, text: str, said: str):
    (folder / "advisor.toml").write_text(f"[flowcharts]\n{text}\n")
    result = check()
    assert result.exit_code == 2 and said in result.output and "advisor.toml" in result.output


@pytest.mark.parametrize(
    "text", ["ours = 3", "ours = []", "[[ours]]\nsteps = []", "a = ['lora']\nb = ['lora']", "a = ["]
)
def test_a_file_that_is_none_is_an_error(folder: Path, text: str):
    (folder / "ours.toml").write_text(text + "\n")
    result = check("--flowchart", "ours.toml")
    assert result.exit_code == 2 and "ours.toml" in result.output and "Traceback" not in result.output


def test_a_wrong_value_in_the_settings_names_its_place(folder: Path):
    (folder / "advisor.toml").write_text("[flowcharts]\nours = 3\n")
    result = check()
    assert result.exit_code == 2 and "advisor.toml:2" in result.output


def test_a_file_that_is_not_there_is_an_error(folder: Path):
    result = check("--flowchart", "none.toml")
    assert result.exit_code == 2 and "none.toml" in result.output
