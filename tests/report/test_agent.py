"""The format for agents: one small line a run, with what is to be done."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.report import render_check

from .samples import DOES_NOT_FIT, FITS, LINT

SAMPLES = Path(__file__).parents[2] / "sample_configs"
LARGEST = 2048


def checked(name: str, *more: str) -> tuple[str, dict[str, Any]]:
    asked = ["check", "--isolated", "--output-format", "agent", *more, str(SAMPLES / f"{name}.yaml")]
    text = CliRunner().invoke(main, asked).output
    (run,) = json.loads(text)["runs"]
    return text, run


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.yaml")))
def test_every_sample_is_answered_in_two_kilobytes(name: str):
    text, run = checked(name)
    assert len(text.encode()) <= LARGEST and run["headline"]


def test_the_option_to_take_has_its_steps_and_the_others_where_they_end():
    _, run = checked("full-8b-out-of-memory", "--gpus", "2x rtx-4090")
    first, second = run["options"]
    assert (first["id"], first["recommended"], first["training"]) == ("A", True, "same")
    assert first["steps"][-1]["needed_gib"] == first["needed_gib"] <= run["usable_gib"] < run["needed_gib"][0]
    assert len(first["steps"]) == first["edits"] and first["host_gib_per_node"] > 1
    assert second["id"] == "B" and second["flags"] == "--fix --unsafe-fixes" and "steps" not in second


def test_the_verdict_is_said_once_and_what_is_not_known_not_at_all():
    _, run = checked("full-8b-out-of-memory", "--gpus", "2x rtx-4090")
    assert "does-not-fit" not in {found["rule"] for found in run["findings"]}
    assert None not in run.values()


def test_a_line_a_run():
    lines = render_check([FITS, DOES_NOT_FIT, LINT], "agent").splitlines()
    assert len(lines) == 5
    assert [json.loads(line.rstrip(","))["verdict"] for line in lines[1:4]] == ["fits", "does-not-fit", "unknown"]


def test_an_error_that_stops_the_run_is_said_with_its_line(tmp_path: Path):
    (tmp_path / "run.yaml").write_text("base_model: Qwen/Qwen3-8B\nadapter: lora\nlora_r: 8\nmicro_batch_size: 1\n")
    asked = ["check", "--isolated", "--gpus", "1x h100-80gb", "--output-format", "agent", str(tmp_path / "run.yaml")]
    (run,) = json.loads(CliRunner().invoke(main, asked).output)["runs"]
    assert run["starts"] is False
    error = next(found for found in run["findings"] if found["rule"] == "lora-without-rank-or-targets")
    assert error["line"] == 2 and "file" not in error and error["message"]
