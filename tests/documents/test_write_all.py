import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from advisor.documents import write_all
from advisor.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_bytes(b"old a")
    (tmp_path / "b.json").write_bytes(b"old b")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def three(folder: Path) -> dict[str, bytes]:
    return {str(folder / name): f"new {name[0]}".encode() for name in ("a.yaml", "b.json", "c.json")}


def test_all_files_are_replaced_and_nothing_else_remains(folder: Path):
    write_all(three(folder))
    assert contents(folder) == {"a.yaml": b"new a", "b.json": b"new b", "c.json": b"new c"}


@pytest.mark.parametrize("function", ["replace", "fsync", "open", "chmod", "stat", "fdopen"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_fault_at_any_step_leaves_old_files_and_nothing_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch, function: str, nth: int, error: BaseException
):
    real = getattr(os, function)
    calls: list[Any] = []

    def faulty(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == nth:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(f"advisor.documents.files.os.{function}", faulty)
    try:
        write_all(three(folder))
    except (InputError, KeyboardInterrupt) as caught:
        monkeypatch.undo()
        assert contents(folder) == {"a.yaml": b"old a", "b.json": b"old b"}
        assert isinstance(error, KeyboardInterrupt) or str(folder) in getattr(caught, "file", "")
    else:
        monkeypatch.undo()
        assert len(calls) < nth
        assert len(contents(folder)) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_disk_that_fills_up_in_the_middle_of_a_file_leaves_old_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, nth: int
):
    real = os.fdopen
    calls: list[int] = []

    def half_of_it(number: int, mode: str) -> Any:
        calls.append(number)
        file = real(number, mode, buffering=0)
        if len(calls) < nth:
            return file
        os.write(number, b"ne")
        file.close()
        return real(os.open("/dev/full", os.O_WRONLY), mode)

    monkeypatch.setattr("advisor.documents.files.os.fdopen", half_of_it)
    with pytest.raises(InputError, match="No space left") as caught:
        write_all(three(folder))
    assert str(folder) in caught.value.file
    assert contents(folder) == {"a.yaml": b"old a", "b.json": b"old b"}


def test_mode_is_kept_and_new_files_follow_the_umask(folder: Path):
    (folder / "a.yaml").chmod(0o640)
    old = os.umask(0o027)
    try:
        write_all(three(folder))
    finally:
        os.umask(old)
    assert stat.S_IMODE((folder / "a.yaml").stat().st_mode) == 0o640
    assert stat.S_IMODE((folder / "c.json").stat().st_mode) == 0o640


def test_behind_a_link_its_target_is_written(folder: Path):
    (folder / "link.yaml").symlink_to("a.yaml")
    write_all({str(folder / "link.yaml"): b"new"})
    assert (folder / "link.yaml").is_symlink() and (folder / "a.yaml").read_bytes() == b"new"


def test_what_cannot_be_written_is_named(folder: Path):
    (folder / "sub").mkdir()
    (folder / "loop").symlink_to(folder / "loop")
    for name in ("sub", "loop", "nowhere/x.yaml"):
        with pytest.raises(InputError, match="nothing was changed") as caught:
            write_all({str(folder / "a.yaml"): b"new", str(folder / name): b"x"})
        assert caught.value.file == str(folder / name)
        assert (folder / "a.yaml").read_bytes() == b"old a"


def test_one_file_under_two_names_is_refused(folder: Path):
    (folder / "link.yaml").symlink_to("a.yaml")
    with pytest.raises(InputError, match="named twice"):
        write_all({str(folder / "link.yaml"): b"x", str(folder / "a.yaml"): b"y"})
    assert (folder / "a.yaml").read_bytes() == b"old a"


def test_a_read_only_file_stays(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("advisor.documents.files.os.access", lambda *_args: False)
    with pytest.raises(InputError, match="read-only"):
        write_all({str(folder / "a.yaml"): b"new"})
    assert contents(folder)["a.yaml"] == b"old a"


def test_a_termination_leaves_no_temporary(folder: Path):
    program = (
        "import os, signal, sys\n"
        "from advisor.documents import write_all\n"
        "real = os.fsync\n"
        "def fsync(number):\n    real(number)\n    os.kill(os.getpid(), signal.SIGTERM)\n"
        "os.fsync = fsync\n"
        "write_all({sys.argv[1]: b'new'})\n"
    )
    result = subprocess.run([sys.executable, "-c", program, str(folder / "a.yaml")], check=False)
    assert result.returncode == 128 + signal.SIGTERM
    assert contents(folder) == {"a.yaml": b"old a", "b.json": b"old b"}


def test_it_writes_from_any_thread(folder: Path):
    thread = threading.Thread(target=write_all, args=(three(folder),))
    thread.start()
    thread.join()
    assert len(contents(folder)) == 3 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_a_killed_process_left_is_removed_and_the_temporary_of_one_at_work_stays(folder: Path):
    for name, age in ((".a.yaml.12-0.tmp", 4000), (".a.yaml.34-1.tmp", 10), (".b.yaml.12-0.tmp", 4000)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    write_all({str(folder / "a.yaml"): b"new a"})
    assert sorted(contents(folder)) == [".a.yaml.34-1.tmp", ".b.yaml.12-0.tmp", "a.yaml", "b.json"]


def test_another_hard_link_keeps_the_old_content(folder: Path):
    os.link(folder / "a.yaml", folder / "store")
    write_all({str(folder / "a.yaml"): b"new a"})
    assert contents(folder)["store"] == b"old a" and contents(folder)["a.yaml"] == b"new a"
