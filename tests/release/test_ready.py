"""A tag is released only if it is the version's, the changelog tells it, and somebody owns the repository."""

import shutil
from pathlib import Path

import pytest

from advisor.about import REPOSITORY, VERSION

from . import notes
from .notes import NoNotesError, date, section
from .places import ROOT, files, write
from .ready import dated, disagreements, missing

CHANGELOG = """\
# Changelog

## [Unreleased]

## [0.3.0] - 2027-01-31

### Added

- One.

## [0.2.0]

- Two.
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The texts that name owner and version, owned, of version 0.3.0, and a changelog."""
    for file in files(ROOT):
        (tmp_path / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    write(tmp_path, "owner", "acme")
    write(tmp_path, "version", "0.3.0")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def replaced(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_nothing_is_missing(copy: Path):
    assert list(missing(copy, "v0.3.0")) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("README.md", "axolotl-advisor@v0.3.0", "axolotl-advisor@v0.2.0", "README.md names the version 0.2.0"),
        (
            "plugins/zed/extension.toml",
            "/acme/",
            "/else/",
            "extension.toml names the owner else, advisor/about.py acme",
        ),
        ("CHANGELOG.md", " - 2027-01-31", "", "no date"),
        ("CHANGELOG.md", "### Added\n\n- One.\n", "", "says nothing of 0.3.0"),
        ("CHANGELOG.md", "## [0.3.0]", "## [0.4.0]", "no section"),
        ("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n- Three.\n", "lines under [Unreleased]"),
    ],
)
def test_what_is_missing_is_told(copy: Path, file: str, old: str, new: str, said: str):
    replaced(copy / file, old, new)
    (found,) = missing(copy, "v0.3.0")
    assert said in found


@pytest.mark.parametrize("tag", ["v0.3.1", "0.3.0", "v0.3.0rc1", ""])
def test_another_tag_is_refused(copy: Path, tag: str):
    (found,) = missing(copy, tag)
    assert found.startswith(f"the tag is {tag}, the version 0.3.0")


def test_nobodys_repository_is_not_released(copy: Path):
    for file in files(copy):
        file.write_text(file.read_text(encoding="utf-8").replace("acme", "OWNER"), encoding="utf-8")
    (found,) = missing(copy, "v0.3.0")
    assert "make owner NAME=" in found


def test_this_version_is_told_and_dated():
    assert [*disagreements(ROOT), *dated(ROOT)] == []


def test_the_notes_are_the_section_of_the_version(capsys: pytest.CaptureFixture[str]):
    assert section(CHANGELOG, "0.3.0") == "### Added\n\n- One."
    assert section(CHANGELOG, "0.2.0") == "- Two." and section(CHANGELOG, "Unreleased") == ""
    assert date(CHANGELOG, "0.3.0") == "2027-01-31" and date(CHANGELOG, "0.2.0") is None
    with pytest.raises(NoNotesError, match=r"## \[9\.9\.9\]"):
        section(CHANGELOG, "9.9.9")
    assert notes.main() == 0
    said = capsys.readouterr().out
    assert said.startswith("### Added") and "## [" not in said and VERSION not in said.splitlines()[0]
    assert REPOSITORY not in said
