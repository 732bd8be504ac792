"""``advisor accuracy --runs``: a file of tests/gpu/measure.py in the same table."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor import estimate
from advisor.accuracy.judging import judged
from advisor.accuracy.own import own_runs
from advisor.cli.main import main
from advisor.errors import InputError

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


def changed(**changes: Any) -> str:
    """The usual line with changes; the peak does not matter."""
    usual = {"name": "1b full", "device": "cuda", "axolotl": AXOLOTL, "deepspeed": None, "stack": STACK}
    usual |= {"outcome": "ok", "gpu": {"name": "NVIDIA H200"}, "phases": PHASES, "memory_limit": None}
    return json.dumps(usual | {"allocated_peak": 1, "reserved_peak": 1} | changes)


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


WHOLE = "or give a file that tests/gpu/measure.py has written"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{", "2:2: not valid JSON: Expecting property name enclosed in double quotes; give a file that"),
        ("[" * 100_000, "2: not valid JSON: nested too deeply; give a file that"),
        ('"text"', '2: the whole is `"text"`; write a mapping, ' + WHOLE),
        ("[1]", "2: the whole is `[1]`; write a mapping, " + WHOLE),
        ("7", "2: the whole is `7`; write a mapping, " + WHOLE),
        ('{"device": "cuda"}', "2: `name` is missing; add it, " + WHOLE),
        (json.dumps({"device": "cuda", "outcome": "ok", "gpu": "H200", "name": "a"}), '2: `gpu` is `"H200"`'),
        (changed(axolotl=None), "2: `axolotl` is `null`; write a mapping, " + WHOLE),
        (changed(axolotl={"base_model": 1}), "2: `axolotl.base_model` is `1`; write a string, " + WHOLE),
        (changed(axolotl={"base_model": "m"}), "2: `axolotl.gradient_checkpointing` is missing; add it, " + WHOLE),
        (changed(allocated_peak=None), "2: `allocated_peak` is `null`; write an integer, " + WHOLE),
        (changed(reserved_peak="1"), '2: `reserved_peak` is `"1"`; write an integer, ' + WHOLE),
        (changed(memory_limit="all"), '2: `memory_limit` is `"all"`; write an integer, ' + WHOLE),
        (changed(deepspeed={"a": 1}), "2: `deepspeed.zero_optimization` is missing; add it, " + WHOLE),
        (changed(deepspeed={"zero_optimization": {"a": 1}}), "2: `deepspeed.zero_optimization.stage` is missing"),
        (changed(gpu={"title": "H200"}), "2: `gpu.name` is missing; add it, " + WHOLE),
        (changed(stack=[]), "2: `stack` is `[]`; write a mapping, " + WHOLE),
        (changed(phases=None), "2: `phases` is `null`; write a mapping, " + WHOLE),
        (changed(outcome={}), "2: `outcome` is `{}`; write 'ok', 'oom' or 'error', " + WHOLE),
    ],
)
def test_what_is_not_a_measured_run_is_named_by_its_line_and_field(tmp_path: Path, wrong: str, said: str):
    file = tmp_path / "h200.jsonl"
    file.write_text(changed() + "\n" + wrong)
    with pytest.raises(InputError) as caught:
        own_runs(str(file))
    assert f"h200.jsonl:{said}" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gpu": {"name": "Abacus 3"}}, "1b full: unknown GPU `abacus 3`; name it as nvidia-smi does"),
        ({"stack": {"torch": 3}}, "1b full: `torch` is `3` in stack; write a version such as 2.13.0"),
        ({"axolotl": AXOLOTL | {"base_model": "no/thing"}}, "1b full: the catalogue has no no/thing; leave this run"),
        ({"axolotl": AXOLOTL | {"sequence_len": "x"}}, "1b full: `sequence_len"),
        ({"deepspeed": {"zero_optimization": {"stage": "y"}}}, "1b full: `zero_optimization.stage"),
    ],
)
def test_a_run_that_cannot_be_estimated_is_named_by_its_line(tmp_path: Path, changes: dict[str, Any], said: str):
    file = tmp_path / "h200.jsonl"
    file.write_text(changed() + "\n" + changed(**changes))
    with pytest.raises(InputError) as caught:
        judged(own_runs(str(file)))
    assert f"h200.jsonl:2: {said}" in str(caught.value)


def test_a_bad_line_is_one_clear_error_of_the_command(tmp_path: Path):
    result = asked(tmp_path, line(), "{")
    assert result.exit_code == 2
    assert "h200.jsonl:2" in result.output
    assert "Traceback" not in result.output


def test_a_good_file_is_read_without_pydantic(tmp_path: Path):
    (tmp_path / "runs.jsonl").write_text(json.dumps(line()) + "\n\n")
    code = (
        "import sys\nfrom advisor.accuracy.own import own_runs\n"
        f"assert own_runs({str(tmp_path / 'runs.jsonl')!r})\nprint('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr


def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path):
    result = CliRunner().invoke(main, ["accuracy", "--runs", str(tmp_path / "none.jsonl")])
    assert result.exit_code == 2
    assert "cannot be read" in result.output


def test_a_model_that_is_not_known_is_one_clear_error(tmp_path: Path):
    result = asked(tmp_path, line(axolotl=AXOLOTL | {"base_model": "nobody/nothing"}))
    assert result.exit_code == 2
    assert "nobody/nothing" in result.output
