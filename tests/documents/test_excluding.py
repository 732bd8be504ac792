"""What a walk leaves out, and that what is named is checked all the same."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.documents import excluding
from advisor.documents.excluding import Glob, parts_match

FILES = ("run.yaml", "drafts/a.yaml", "a/drafts/b.yaml", "a/b.yaml", "a/x/y/old.yaml", "tmpl.j2.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRE_COMMIT", raising=False)
    return tmp_path


def left(*arguments: str) -> set[str]:
    """The files that were checked."""
    done = CliRunner().invoke(main, ["check", "--output-format", "json", *arguments])
    return {Path(run["file"]).as_posix() for run in json.loads(done.stdout)["runs"]}


@pytest.mark.parametrize(
    ("pattern", "gone"),
    [
        ("drafts", {"drafts/a.yaml", "a/drafts/b.yaml"}),
        ("drafts/", {"drafts/a.yaml", "a/drafts/b.yaml"}),
        ("/drafts", {"drafts/a.yaml"}),
        ("a/drafts", {"a/drafts/b.yaml"}),
        ("*.j2.yaml", {"tmpl.j2.yaml"}),
        ("a/*.yaml", {"a/b.yaml"}),
        ("a/**/old.yaml", {"a/x/y/old.yaml"}),
        ("**/drafts/*", {"drafts/a.yaml", "a/drafts/b.yaml"}),
        ("a", {"a/drafts/b.yaml", "a/b.yaml", "a/x/y/old.yaml"}),
        ("nothing", set[str]()),
    ],
)
def test_a_pattern_leaves_out_what_a_gitignore_would(folder: Path, pattern: str, gone: set[str]):
    assert left("--exclude", pattern, ".") == set(FILES) - gone


def test_what_is_named_is_checked(folder: Path):
    assert left("--exclude", "drafts", "drafts/a.yaml") == {"drafts/a.yaml"}
    assert left("--exclude", "drafts", "drafts") == {"drafts/a.yaml"}


def test_pre_commit_names_files_that_nobody_chose(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRE_COMMIT", "1")
    assert left("--exclude", "drafts", "drafts/a.yaml", "run.yaml") == {"run.yaml"}


def test_patterns_of_the_settings_are_from_their_folder_on_and_options_add_to_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "advisor.toml").write_text('exclude = ["a/drafts"]\n')
    assert left(".") == set(FILES) - {"a/drafts/b.yaml"}
    assert left("--exclude", "tmpl.*", ".") == set(FILES) - {"a/drafts/b.yaml", "tmpl.j2.yaml"}
    monkeypatch.chdir(folder / "a")
    assert left(".") == {"b.yaml", "x/y/old.yaml"}


def test_a_star_stays_within_a_folder():
    assert not Glob(".", "a/*").matches("a/b/c.yaml")
    assert Glob(".", "a/**").matches("a/b/c.yaml")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**", "", True),
        ("**/**", "a", True),
        ("a/**", "a", True),
        ("**/a/**/a/**", "a/b/a", True),
        ("**/a/**/a/**", "b/a/b", False),
        ("*/**/x", "a/b/c/x", True),
        ("*/**/x", "x", False),
        ("a/*/**/b", "a/b", False),
    ],
)
def test_stars_stand_for_folders(pattern: str, path: str, matches: bool):
    assert parts_match(pattern.split("/"), path.split("/") if path else []) == matches


@pytest.mark.parametrize("pattern", ["**/" * 60 + "x", "**/a/" * 30 + "x", "a/**/*/" * 20 + "x"])
def test_many_stars_are_matched_in_one_walk_of_the_path(monkeypatch: pytest.MonkeyPatch, pattern: str):
    compared: list[str] = []
    true = excluding.fnmatchcase
    monkeypatch.setattr(excluding, "fnmatchcase", lambda name, part: compared.append(name) or true(name, part))
    parts = [part for part in pattern.split("/") if part]
    assert not parts_match(parts, ["a"] * 40)
    assert len(compared) <= len(parts) * 40
