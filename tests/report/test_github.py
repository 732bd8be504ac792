from dataclasses import replace
from pathlib import Path

import pytest

from advisor.engine.finding import Finding, Place, Report
from advisor.report import render_check

from .samples import DOES_NOT_FIT, FITS, LINT


def commands(*reports: Report) -> list[str]:
    return render_check(reports, "github").splitlines()


def report_of(*findings: Finding) -> Report:
    return replace(LINT, hardware="1x T4", findings=findings)


def test_runs_without_hardware_are_one_warning_whatever_is_ignored():
    silent = [replace(LINT, file=f"{name}.yaml", findings=()) for name in "abcd"]
    json_alone = replace(LINT, file="zero.json", findings=())
    (warning,) = commands(*silent, json_alone)
    assert warning.startswith("::warning title=advisor (no hardware),file=a.yaml,line=1::")
    assert warning.endswith("no GPUs are stated for a.yaml, b.yaml, c.yaml and 1 more; state `gpus`")


def test_commands_point_at_lines_most_severe_first():
    assert commands(LINT) == [
        "::warning title=advisor (no hardware),file=llama.yaml,line=1::"
        "memory was not checked, since no GPUs are stated for llama.yaml; state `gpus`",
        "::error title=advisor (offload-param-without-zero-3),file=zero2.json,line=4,endLine=6::"
        "`zero_optimization.offload_param` with stage 2: DeepSpeed refuses it at the start; remove it"
        "%0A  edit: same training",
        "::warning title=advisor (bf16-unsupported),file=llama.yaml,line=4,col=7,endLine=4,endColumn=11::"
        "`bf16: true` on a V100, which has no bf16 units: the launch fails or crawls; use fp16"
        "%0A  edit: changes what is trained",
        "::notice title=advisor (no-hardware),file=llama.yaml,line=1::"
        "the hardware is unknown, so memory was not estimated%0A  help: --gpus",
    ]


def test_nothing_is_printed_where_nothing_is_found():
    assert render_check([FITS], "github") == ""


def test_what_the_runner_would_misread_is_escaped():
    finding = Finding("a", "note", "100 %\r\nnext: x, y", Place("a,b:c%.yaml", 1, 1, 1, 2))
    assert commands(report_of(finding)) == [
        "::notice title=advisor (a),file=a%2Cb%3Ac%25.yaml,line=1,col=1,endLine=1,endColumn=2::100 %25%0D%0Anext: x, y"
    ]


def test_ten_of_a_level_become_annotations_and_the_rest_lines_of_the_log():
    findings = [Finding(f"w{n}", "warning", "w", Place("a.yaml", n + 1, 1)) for n in range(12)]
    shown = commands(report_of(*findings, Finding("e", "error", "e", Place("a.yaml", 99, 1))))
    assert shown[0].startswith("::error title=advisor (e)")
    assert [line.startswith("::warning") for line in shown[1:]] == [True] * 10 + [False] * 2
    assert shown[-1] == "a.yaml:12:1: warning[w11] w"


def test_a_long_message_is_cut_before_it_is_escaped():
    (command,) = commands(report_of(Finding("a", "error", "%" * 2000, Place("a.yaml", 1, 1))))
    message = command.split("::", 2)[2]
    assert message == "%25" * 1023 + "…"


def test_paths_are_relative_to_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    finding = Finding("a", "error", "m", Place(str(tmp_path / "configs" / "a.yaml")))
    assert commands(report_of(finding)) == ["::error title=advisor (a),file=configs/a.yaml,line=1::m"]


def test_the_steps_of_a_plan_are_one_notice_with_what_each_saves():
    _, notice = commands(DOES_NOT_FIT)
    head, *lines = notice.split("%0A")
    assert head.startswith("::notice title=advisor (plan),file=llama.yaml,line=3,")
    assert head.endswith("::3 steps of the plan; changes what is trained:")
    assert lines[0] == (
        "  1. zero-2: Shard optimizer states and gradients across the GPUs (ZeRO-2); "
        "90.7 -> 88.1 GiB per GPU: does not fit; same training"
    )
    assert [line.split(":")[0] for line in lines] == ["  1. zero-2", "  2. gradient-checkpointing", "  3. lora"]


def test_a_plan_of_one_step_is_that_step():
    one = replace(DOES_NOT_FIT, findings=DOES_NOT_FIT.findings[:2])
    assert commands(one)[1].startswith("::notice title=advisor (zero-2),")
