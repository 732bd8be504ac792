"""What runs the copied lines: none is left out unseen, the clone answers for the address, and a line that fails is told."""

import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.about import REPOSITORY
from advisor.util import toml_library

from . import check
from .lines import first_block, installs
from .places import ROOT
from .user import TAG, BrokenLineError, User, user

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="no checkout")


def test_every_line_and_snippet_is_run_or_said_to_be_left_out():
    steps = dict(check.steps())
    told = " ".join(steps)
    for line in installs(ROOT):
        assert line.kind == "checkout" or line.command in told or line.requirement in first_block(ROOT), line
    for name in (".gitlab-ci.yml", ".pre-commit-config.yaml", ".github/workflows/advisor.yml"):
        assert f"site, {name}" in steps
    assert "README.md, make demo" in steps
    assert all(run for name, run in steps.items() if "[" not in name)


def test_what_is_left_out_brings_torch_or_transformers():
    extras = toml_library().loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for name in check.HEAVY:
        assert any(package.startswith(("axolotl", "transformers", "torch")) for package in extras[name]), name


def test_the_clone_answers_with_the_tag_where_the_address_is_asked():
    with user() as someone:
        said = someone.shell(f"git ls-remote --tags {REPOSITORY} {TAG}", someone.folder)
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
        assert said.split() == [head.stdout.strip(), f"refs/tags/{TAG}"]


def test_a_line_that_fails_is_told_with_what_it_said(tmp_path: Path):
    with pytest.raises(BrokenLineError, match="exit code 3\n+no such thing"):
        User(ROOT, tmp_path).shell("echo no such thing >&2; exit 3\necho never", tmp_path)


def test_it_ends_with_the_first_line_that_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def broken(_: User) -> None:
        raise BrokenLineError("exit code 1")

    monkeypatch.setattr(check, "steps", lambda: iter([("one", None), ("two", broken), ("three", broken)]))
    assert check.main() == 1
    told = capsys.readouterr()
    assert "left out  one" in told.out and "two" in told.err and "three" not in told.out + told.err
