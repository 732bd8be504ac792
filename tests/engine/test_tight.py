"""A run that is tight as written: safe steps that make it fit, the same in every front end."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.engine.check import check_run
from advisor.engine.fix import fixed
from advisor.engine.options import Options
from advisor.opening import LoadedRun
from tests.conftest import opened

TIGHT = """\
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: a, type: alpaca}]
learning_rate: 1e-4
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 9728
micro_batch_size: 1
gradient_checkpointing: true
attn_implementation: flash_attention_2
bf16: true
"""
GPUS = "1x rtx-4090"


@pytest.fixture
def tight(tmp_path: Path) -> LoadedRun:
    return opened(tmp_path, TIGHT, GPUS)


def test_a_tight_run_gets_the_safe_steps_that_make_it_fit(tight: LoadedRun):
    report = check_run(tight, Options())
    assert report.verdict == "tight" and report.plan is not None
    assert report.plan.verdict == "fits" and report.plan.safe
    assert [finding.rule for finding in report.findings if finding.step] == ["fused-loss"]
    assert "tight-fit" in {finding.rule for finding in report.findings}
    assert report.rungs


def test_fix_makes_it_fit_and_has_nothing_left_to_do(tight: LoadedRun):
    result = fixed(tight, Options(), unsafe=False)
    after = replace(tight, run=result.run)
    assert check_run(after, Options()).verdict == "fits"
    assert not fixed(after, Options(), unsafe=False).done


def test_no_plan_where_no_safe_step_makes_it_fit(tmp_path: Path):
    """Steps that end tight again, or that change what is trained, are not offered for a risk."""
    report = check_run(
        opened(tmp_path, TIGHT, f"{GPUS} host=1GiB"), Options(ignore=("fused-loss", "offload-optimizer"))
    )
    assert report.verdict == "tight" and report.plan is None and not report.rungs


@pytest.mark.parametrize("ignore", [("tight-fit",), ()])
def test_no_plan_where_the_risk_is_accepted(tmp_path: Path, ignore: tuple[str, ...]):
    comment = "" if ignore else "# advisor: file-ignore[tight-fit] it ran\n"
    report = check_run(opened(tmp_path, comment + TIGHT, GPUS), Options(ignore=ignore))
    assert report.verdict == "tight" and report.plan is None and not any(one.step for one in report.findings)


def test_the_command_ends_with_0_and_shows_the_plan(tmp_path: Path):
    (tmp_path / "run.yaml").write_text(TIGHT)
    call = ["check", str(tmp_path / "run.yaml"), "--gpus", GPUS, "--isolated"]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0 and "1 edit brings it down to" in " ".join(done.output.split())
    (said,) = json.loads(CliRunner().invoke(main, [*call, "--output-format", "json"]).output)["runs"]
    assert said["plan"]["safe"] and said["plan"]["memory"]["after"] < said["plan"]["memory"]["before"]
