"""Where cited lines have gone, and that those of the installed source are there."""

import sysconfig
from pathlib import Path

import pytest

from .cited import Citation, Packages, citations, cited_in, followed

OLD = ["import os", "", "def stop():", "    raise ValueError", "", "def go():", "    pass"]


def installed(folder: Path, version: str, lines: list[str] | None) -> Packages:
    (folder / f"peft-{version}.dist-info").mkdir(parents=True)
    (folder / "peft" / "tuners").mkdir(parents=True)
    if lines is not None:
        (folder / "peft" / "tuners" / "layer.py").write_text("\n".join(lines))
    return Packages([folder])


def fate(tmp_path: Path, new: list[str] | None, path: str = "peft/tuners/layer.py", version: str = "1.0"):
    here, newer = installed(tmp_path / "old", "1.0", OLD), installed(tmp_path / "new", "2.0", new)
    found = followed(Citation(path, 3, 4, version, "a.py:1"), here, newer)
    return found and (found.fate, found.line)


def test_every_span_of_a_source_is_a_citation_of_its_own():
    found = [str(one) for one in cited_in("x\nsee peft/tuners/layer.py:3-4, 9@0.20.0; then utils.py:7@1.0.", "a.py")]
    assert found == ["peft/tuners/layer.py:3-4@0.20.0", "peft/tuners/layer.py:9@0.20.0", "utils.py:7@1.0"]
    assert next(cited_in("x\nsee a.py:3@1.0", "b.py")).place == "b.py:2"


@pytest.mark.parametrize(
    ("new", "found"),
    [
        (OLD, ("same", 0)),
        (["# more", *OLD], ("moved", 4)),
        ([line.replace("Value", "Type") for line in OLD], ("changed", 0)),
        (None, ("gone", 0)),
    ],
)
def test_lines_stay_move_change_or_go(tmp_path: Path, new: list[str] | None, found: tuple[str, int]):
    assert fate(tmp_path, new) == found


def test_a_part_of_a_path_is_enough_where_one_file_has_it(tmp_path: Path):
    assert fate(tmp_path, OLD, "tuners/layer.py") == ("same", 0)
    assert fate(tmp_path / "more", OLD, "other.py") is None


def test_a_version_that_is_not_here_is_not_followed(tmp_path: Path):
    assert fate(tmp_path, OLD, version="0.9") is None


@pytest.mark.oracle
def test_what_is_cited_of_the_installed_source_is_there():
    pytest.importorskip("axolotl")
    here = Packages([sysconfig.get_paths()["purelib"]])
    whole = [one for one in citations() if here.versions.get(one.path.split("/")[0]) == one.version]
    assert len(whole) > 200
    assert [f"{one} in {one.place}" for one in whole if followed(one, here, here) is None] == []
