"""``advisor check --against``: a run next to what it was, in a real repository; fixes as suggestions on its diff."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from advisor.cli.against import diffed_lines
from advisor.documents import Edit
from advisor.engine.finding import Report
from advisor.report.suggestions import changed_lines

from ..review_requests import GITHUB_REVIEW
from .test_changed_since import QUIET, check, commit, git

CONFIG = """\
base_model: Qwen/Qwen2.5-7B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 8
num_epochs: 1
learning_rate: 0.0002
optimizer: adamw_torch_fused
bf16: true
gradient_checkpointing: true
attn_implementation: flash_attention_2
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
"""
ADVISOR = (sys.executable, "-m", "advisor", "check", "--isolated")
GPUS = ("--gpus", "1x rtx-4090")
REVIEWS = ("--output-format", "github-review=review.json", "--output-format", "gitlab-review=lab.json")
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "run.yaml").write_text(CONFIG)
    git(folder, "init", "--quiet")
    commit(folder)
    git(folder, "branch", "base")
    return folder


@pytest.fixture
def run(repository: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [*ADVISOR, *GPUS, "--against", "base", *arguments]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False, env=QUIET)

    return run


def change(repository: Path, old: str, new: str) -> None:
    path = repository / "run.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_memory_verdict_and_time_are_told_before_and_after(repository: Path, run: Run):
    change(repository, "micro_batch_size: 1", "micro_batch_size: 8")
    commit(repository)
    done = run("--output-format", "full", "--output-format", "markdown=r.md", "run.yaml")
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    arrows = r"run\.yaml against base: [\d.]+ -> [\d.]+ GiB of 23\.1, fits -> does not fit, [\d.]+ -> [\d.]+ s a step"
    assert re.search(arrows, said)
    comment = (repository / "r.md").read_text()
    assert comment.startswith("### ❌ `run.yaml` no longer fits\n")
    assert re.search(r"\| [\d.]+ → \*\*[\d.]+\*\* of 23\.1 \| ▲ [\d.]+ \| [\d,]+ → [\d,]+ \([+−]\d+%\) \|", comment)


@pytest.mark.slow
def test_what_the_base_has_too_does_not_count(repository: Path, run: Run):
    change(repository, "num_epochs: 1", "num_epochs: 1\nlora_dropuot: 0.1\nmicro_batch_sise: 1")
    commit(repository)
    git(repository, "branch", "-f", "base")
    change(repository, "lora_r: 16", "lora_r: 32")
    done = run("--output-format", "json", "run.yaml")
    assert done.returncode == 0
    (found,) = json.loads(done.stdout)["runs"]
    assert {each["rule"] for each in found["against"]["known"]} >= {"unknown-key"}
    assert not any(each["level"] == "error" for each in found["findings"])
    change(repository, "lora_r: 32", "lora_rr: 32")
    again = run("--output-format", "concise", "run.yaml")
    assert again.returncode == 1 or "lora_rr" in again.stdout
    assert "lora_dropuot" not in again.stdout and "findings of base not repeated" in run("run.yaml").stdout


@pytest.mark.slow
def test_a_run_that_did_not_fit_before_is_not_blamed_on_the_change(repository: Path, run: Run):
    change(repository, "micro_batch_size: 1", "micro_batch_size: 8")
    commit(repository)
    git(repository, "branch", "-f", "base")
    change(repository, "num_epochs: 1", "num_epochs: 2")
    done = run("--output-format", "json", "run.yaml")
    (found,) = json.loads(done.stdout)["runs"]
    assert done.returncode == 0 and found["verdict"] == "does-not-fit"
    assert "does-not-fit" in {each["rule"] for each in found["against"]["known"]}


@pytest.mark.slow
def test_a_config_that_is_new_or_renamed(repository: Path, run: Run):
    git(repository, "mv", "run.yaml", "moved.yaml")
    (repository / "new.yaml").write_text(CONFIG.replace("7B", "3B"))
    commit(repository)
    said = run("--output-format", "concise", ".").stdout
    assert "new.yaml: new" in said
    assert "moved.yaml: " in said and "moved.yaml: new" not in said


def test_the_base_has_its_own_deepspeed_json(repository: Path, run: Run):
    stage = (
        '{"zero_optimization": {"stage": %d}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": "auto"}\n'
    )
    full = CONFIG.replace("adapter: lora\n", "").replace("7B", "0.5B") + "deepspeed: ds.json\n"
    (repository / "run.yaml").write_text("".join(row for row in full.splitlines(True) if not row.startswith("lora")))
    (repository / "ds.json").write_text(stage % 1)
    commit(repository)
    git(repository, "branch", "-f", "base")
    (repository / "ds.json").write_text(stage % 3)
    done = run("--gpus", "4x rtx-4090 link=pcie", "--output-format", "json", "run.yaml")
    (found,) = json.loads(done.stdout)["runs"]
    then, now = found["against"]["run"]["memory"]["allocated_peak"], found["memory"]["allocated_peak"]
    assert then != now
    assert found["hardware"] == found["against"]["run"]["hardware"] == "4x RTX 4090"


@pytest.mark.slow
def test_a_json_alone_is_compared_as_one(repository: Path, run: Run):
    wrong = '{\n  "zero_optimization": {"stage": 9}\n}\n'
    (repository / "alone.json").write_text(wrong)
    commit(repository)
    git(repository, "branch", "-f", "base")
    (repository / "alone.json").write_text(wrong.replace("{\n", '{\n  "train_micro_batch_size_per_gpu": "auto",\n', 1))
    done = run("--output-format", "json", "alone.json")
    (found,) = json.loads(done.stdout)["runs"]
    assert done.returncode == 0 and "stage" in found["against"]["known"][0]["message"]
    assert "alone.json against base: no figures; 1 finding of base not repeated" in run("alone.json").stdout


def applied(text: str, comment: dict[str, Any]) -> str:
    """The file once a suggestion is accepted."""
    lines = text.splitlines(True)
    body = comment["body"]
    new = body[body.index("```suggestion") :].split("\n", 1)[1].rsplit("```", 1)[0]
    first = comment.get("start_line", comment["line"])
    return "".join([*lines[: first - 1], new, *lines[comment["line"] :]])


def test_a_fix_on_lines_of_the_diff_is_a_suggestion_that_does_what_fix_does(repository: Path, run: Run):
    change(
        repository,
        "micro_batch_size: 1\ngradient_accumulation_steps: 8",
        "micro_batch_size: 8\ngradient_accumulation_steps: 1",
    )
    commit(repository)
    run(*REVIEWS, "--ignore", "fused-loss", "run.yaml")
    review = json.loads((repository / "review.json").read_text())
    jsonschema.Draft202012Validator(GITHUB_REVIEW).validate(review)
    (comment,) = (each for each in review["comments"] if "smaller-micro-batch" in each["body"])
    assert (comment["path"], comment["start_line"], comment["line"]) == ("run.yaml", 8, 9)
    text = (repository / "run.yaml").read_text()
    suggested = applied(text, comment)
    subprocess.run(
        [*ADVISOR, *GPUS, "--fix", "--ignore", "fused-loss", "run.yaml"],
        cwd=repository,
        capture_output=True,
        check=False,
        env=QUIET,
    )
    assert suggested == (repository / "run.yaml").read_text() != text
    (lab,) = (each for each in json.loads((repository / "lab.json").read_text()) if "smaller" in each["body"])
    assert lab["position"] == {
        "position_type": "text",
        "new_path": "run.yaml",
        "old_path": "run.yaml",
        "new_line": 9,
    }
    assert "```suggestion:-1+0\n" in lab["body"]


@pytest.mark.slow
def test_a_fix_elsewhere_is_left_to_the_comment(repository: Path, run: Run):
    change(repository, "micro_batch_size: 1\n", "micro_batch_size: 1\n" + "# far\n" * 20)
    change(repository, "sequence_len: 2048", "sequence_len: 32768")
    commit(repository)
    git(repository, "branch", "-f", "base")
    change(repository, "type: alpaca", "type: alpaca  # changed")
    change(repository, "lora_r: 16", "lora_r: 17")
    run("--output-format", "github-review=review.json", "run.yaml")
    assert json.loads((repository / "review.json").read_text())["comments"] == []


@pytest.mark.slow
@pytest.mark.parametrize("option", [["--fix"], ["--diff"], ["-p"]])
def test_it_only_compares(run: Run, option: list[str]):
    done = run(*option, "run.yaml")
    assert done.returncode == 2 and "cannot be combined" in done.stderr


@pytest.mark.slow
def test_an_unknown_revision_is_an_error_with_its_remedy(repository: Path, run: Run):
    done = check(repository, *GPUS, "--against", "no-such-branch", "run.yaml")
    assert done.returncode == 2 and "--against: unknown revision `no-such-branch`" in done.stderr


@pytest.mark.slow
def test_a_config_that_could_not_be_read_before_counts_as_new(repository: Path, run: Run):
    (repository / "run.yaml").write_text("base_model: [\n")
    commit(repository)
    git(repository, "branch", "-f", "base")
    (repository / "run.yaml").write_text(CONFIG)
    assert "run.yaml: new" in run("--output-format", "concise", "run.yaml").stdout


def test_the_lines_of_a_diff():
    diff = "--- a\n+++ b\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+3\n four\n@@ -9 +10,0 @@\n-x\n"
    assert diffed_lines(diff) == ({2, 3}, {1, 2, 3, 4})


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([Edit("f", 3, 4, "9")], [(1, 1, "a: 9")]),
        ([Edit("f", 5, 10, "")], [(2, 2, "")]),
        ([Edit("f", 15, 15, "d: 4\n")], [(3, 3, "c: 3\nd: 4")]),
        ([Edit("f", 3, 4, "9"), Edit("f", 8, 9, "8")], [(1, 2, "a: 9\nb: 8")]),
        ([Edit("f", 3, 4, "9"), Edit("f", 13, 14, "8")], [(1, 1, "a: 9"), (3, 3, "c: 8")]),
        ([Edit("f", 5, 5, "x: 1\n")], [(2, 2, "x: 1\nb: 2")]),
    ],
)
def test_edits_are_whole_lines(edits: list[Edit], expected: list[tuple[int, int, str]]):
    report = Report("f", None, "unknown", None, (), texts={"f": "a: 1\nb: 2\nc: 3\n"})
    found = changed_lines(edits, report) or []
    assert [(each.first, each.last, each.text) for each in found] == expected


def test_a_new_file_is_no_suggestion():
    report = Report("f", None, "unknown", None, (), texts={"f": "a: 1\n"})
    assert changed_lines([Edit("g.json", 0, 0, "{}", create=True)], report) is None
