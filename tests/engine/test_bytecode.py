"""The rules' bytecode in one file: never of another state of the files than theirs, and never needed."""

import os
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from advisor.engine.bytecode import bytecode, read, stamps_of

STAGES = ("lint",)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two rules, and a file that is none."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "lint").mkdir()
    (tmp_path / "lint" / "first.py").write_text("rule = 1")
    (tmp_path / "lint" / "second.py").write_text("rule = 2")
    (tmp_path / "lint" / "_shared.py").write_text("rule = 3")
    return tmp_path


def kept(folder: Path) -> Path:
    return Path(cache_from_source(str(folder / "rules.py")))


def rules(folder: Path) -> dict[str, object]:
    """What each file calls ``rule``."""
    found: dict[str, object] = {}
    for path, code in bytecode(folder, STAGES).items():
        values: dict[str, object] = {}
        if code is not None:
            exec(code, values)
        found[Path(path).stem] = values.get("rule")
    return found


def test_what_was_kept_is_read_again(folder: Path):
    assert rules(folder) == {"first": 1, "second": 2}
    before = kept(folder).stat()
    os.utime(kept(folder), ns=(0, 0))
    assert rules(folder) == {"first": 1, "second": 2}
    assert kept(folder).stat().st_size == before.st_size
    assert kept(folder).stat().st_mtime_ns == 0  # not written a second time


def test_a_file_that_changes_comes_or_goes_is_noticed(folder: Path):
    rules(folder)
    (folder / "lint" / "first.py").write_text("rule = 'longer'")
    assert rules(folder) == {"first": "longer", "second": 2}
    (folder / "lint" / "third.py").write_text("rule = 3")
    (folder / "lint" / "second.py").unlink()
    assert rules(folder) == {"first": "longer", "third": 3}


def test_a_folder_that_was_moved_is_noticed(folder: Path):
    rules(folder)
    moved = folder.with_name("moved")
    folder.rename(moved)
    assert all(path.startswith(str(moved)) for path in bytecode(moved, STAGES))
    assert all(code and code.co_filename.startswith(str(moved)) for code in bytecode(moved, STAGES).values())


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, None], ids=["empty", "zeros", "half"])
def test_a_damaged_file_is_made_again(folder: Path, damage: bytes | None):
    rules(folder)
    whole = kept(folder).read_bytes()
    kept(folder).write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert rules(folder) == {"first": 1, "second": 2}
    assert read(kept(folder), stamps_of(folder, STAGES)) is not None


def test_a_file_that_does_not_compile_is_left_to_whoever_runs_it(folder: Path):
    (folder / "lint" / "first.py").write_text("rule = ")
    assert rules(folder) == {"first": None, "second": 2}
    assert not kept(folder).exists()


def test_nothing_is_kept_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rules(folder) == {"first": 1, "second": 2}
    assert not kept(folder).exists()
