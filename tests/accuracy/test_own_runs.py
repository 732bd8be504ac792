"""``advisor accuracy --runs``: a file of tests/gpu/measure.py in the same table."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from advisor import estimate
from advisor.accuracy.judging import judged
from advisor.accuracy.own import own_runs
from advisor.cli.main import main

AXOLOTL = {
    "base_model": "meta-llama/Llama-3.2-1B",
    "sequence_len": 2048,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "bf16": True,
    "attn_implementation": "sdpa",
    "optimizer": "adamw_torch_fused",
    "sample_packing": False,
    "pad_to_sequence_len": False,
    "gradient_checkpointing": False,
}
STACK = {"trainer": "hf-trainer", "amp": True, "padding": "packed", "expandable_segments": False}
PHASES = {"load": {}, "prepare": {}, "forward and loss": {}, "backward": {}, "optimizer step": {}}


def line(**changes: Any) -> dict[str, Any]:
    """A line as measure.py writes it, with the peak that is estimated unless another is given."""
    peak = estimate(AXOLOTL, gpus="1x H200", stack=STACK).allocated_peak
    usual: dict[str, Any] = {
        "name": "1b full",
        "device": "cuda",
        "axolotl": AXOLOTL,
        "deepspeed": None,
        "stack": STACK,
        "outcome": "ok",
        "gpu": {"name": "NVIDIA H200"},
        "phases": PHASES,
        "allocated_peak": peak,
        "reserved_peak": round(1.1 * peak),
        "memory_limit": None,
    }
    return usual | changes


def asked(tmp_path: Path, *lines: object) -> Result:
    file = tmp_path / "h200.jsonl"
    file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))
    return CliRunner().invoke(main, ["accuracy", "--runs", str(file)])


def test_runs_of_ones_own_are_shown_in_the_same_table(tmp_path: Path):
    peak = line()["allocated_peak"]
    result = asked(tmp_path, *(line(allocated_peak=round(peak / factor)) for factor in (1.0, 1.02, 1.04)))
    assert result.exit_code == 0, result.output
    (found,) = [row for row in result.output.splitlines() if row.startswith("Llama-3.2-1B-full-none-n1-nockpt ")][:1]
    assert found.split()[1:6] == ["3", "2.0%", "4.0%", "4.0%", "+2.0%"]
    assert "not among the evidence" not in result.output


def test_json_names_its_version(tmp_path: Path):
    file = tmp_path / "h200.jsonl"
    file.write_text(json.dumps(line()))
    result = CliRunner().invoke(main, ["accuracy", "--runs", str(file), "--output-format", "json"])
    assert json.loads(result.output)["version"] == 1


def test_a_limit_is_what_the_run_had(tmp_path: Path):
    peak = line()["allocated_peak"]
    file = tmp_path / "runs.jsonl"
    tight = line(outcome="oom", memory_limit=round(1.02 * peak), allocated_peak=None, reserved_peak=None)
    failed = line(outcome="oom", memory_limit=round(0.9 * peak), allocated_peak=None, reserved_peak=None)
    file.write_text("".join(json.dumps(one) + "\n" for one in (tight, failed, line(memory_limit=2 * peak))))
    found = judged(own_runs(str(file)))
    assert [case.verdict for case in found] == ["tight", "does-not-fit", "fits"]
    assert not any(case.case.counts for case in found)


def test_runs_that_say_nothing_of_a_gpu_are_left_out(tmp_path: Path):
    result = asked(tmp_path, line(device="cpu", gpu=None), line(outcome="error", error="no"))
    assert result.exit_code == 2
    assert "has no measured run" in result.output


def test_what_is_not_a_measured_run_is_named_by_its_line(tmp_path: Path):
    for wrong in ("{", '"text"', "[1]", '{"device": "cuda"}', json.dumps(line(axolotl=None))):
        result = asked(tmp_path, line(), wrong)
        assert result.exit_code == 2, wrong
        assert "line 2" in result.output, wrong
        assert "Traceback" not in result.output


def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path):
    result = CliRunner().invoke(main, ["accuracy", "--runs", str(tmp_path / "none.jsonl")])
    assert result.exit_code == 2
    assert "cannot be read" in result.output


def test_a_model_that_is_not_known_is_one_clear_error(tmp_path: Path):
    result = asked(tmp_path, line(axolotl=AXOLOTL | {"base_model": "nobody/nothing"}))
    assert result.exit_code == 2
    assert "nobody/nothing" in result.output
