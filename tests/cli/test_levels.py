"""``-q``, nothing, ``-v``: each level only adds to the one before, and none changes an exit code."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from tests.engine.test_plan_tiers import CARD, LONG

ROOT = Path(__file__).parents[2]
SAMPLES = ("full-8b-out-of-memory", "zero3-70b-too-few-cards", "full-1b-fits", "qlora-moe-30b")


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def shown(name: str, *options: str) -> tuple[int, list[str]]:
    done = CliRunner().invoke(main, ["check", *options, f"sample_configs/{name}.yaml"])
    return done.exit_code, done.output.splitlines()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_level_adds_to_the_one_before(name: str):
    (quiet_code, quiet), (code, usual), (whole_code, whole) = (shown(name, *level) for level in (["-q"], [], ["-v"]))
    assert quiet_code == code == whole_code
    assert set(quiet) <= set(usual) and len(quiet) < len(usual) < len(whole)
    assert quiet[0] == usual[0] == whole[0]
    assert "Range: " in "".join(whole) and "Range: " not in "".join(usual)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_answer_is_within_the_first_five_lines(name: str):
    _, usual = shown(name)
    answer = " ".join(usual[:5])
    assert answer.startswith(("Does not fit: needs ", "Fits: needs ")) and "add --fix" in answer


def test_quiet_and_verbose_contradict_each_other():
    assert shown(SAMPLES[0], "-q", "-v")[0] == 2


@pytest.mark.parametrize("end", ["\n", ""])
def test_git_applies_what_diff_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str):
    text = (ROOT / "sample_configs" / "full-8b-out-of-memory.yaml").read_text(encoding="utf-8").rstrip("\n") + end
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "run.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    diff = CliRunner().invoke(main, ["check", "--isolated", "--diff", "sub/run.yaml"]).stdout
    subprocess.run(["git", "apply", "-"], input=diff, encoding="utf-8", check=True)
    applied = {path.name: path.read_bytes() for path in (tmp_path / "sub").iterdir()}
    (tmp_path / "sub" / "run.yaml").write_text(text, encoding="utf-8")
    for path in (tmp_path / "sub").glob("*.json"):
        path.unlink()
    assert CliRunner().invoke(main, ["check", "--isolated", "--fix", "sub/run.yaml"]).exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "sub").iterdir()} == applied


def test_fix_says_before_and_after_what_it_made_and_how_to_undo_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = (ROOT / "sample_configs" / "full-8b-out-of-memory.yaml").read_text(encoding="utf-8")
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    output = CliRunner().invoke(main, ["check", "--isolated", "--fix", "run.yaml"]).output
    assert output.startswith("Fixed run.yaml: 5 edits, 349.5 -> ")
    assert "\ncreated: run.zero-3.json\n" in output
    assert "to undo, if it was committed: git checkout -- run.yaml && rm run.zero-3.json" in output
    assert "\nFits" in output


def test_fix_heeds_the_levels_too(tmp_path: Path):
    def written(*level: str) -> list[str]:
        text = (ROOT / "sample_configs" / "full-8b-out-of-memory.yaml").read_text(encoding="utf-8")
        (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
        done = CliRunner().invoke(main, ["check", "--isolated", "--fix", *level, str(tmp_path / "run.yaml")])
        return done.output.splitlines()

    quiet, usual, whole = written("-q"), written(), written("-v")
    assert len(quiet) < len(usual) < len(whole)
    assert "Range: " in "".join(whole) and "Range: " not in "".join(usual)


def test_what_must_be_installed_first_is_said_once_the_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(LONG)
    output = CliRunner().invoke(main, ["check", "--isolated", "--gpus", CARD, "--fix", "-q", "run.yaml"]).output
    assert "\ninstall first: pip install " in output and "\nFits" in output
