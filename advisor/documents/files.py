"""Documents from the disk, and back onto it: all files or none, each whole at any moment."""

import os
import signal
import stat
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from advisor.documents.document import Document, parse
from advisor.errors import InputError
from advisor.record import record
from advisor.util import MAX_BYTES, read_start, regex

TEMPORARY = regex(r"\d+-\d+\.tmp")
STALE_SECONDS = 3600


def read(path: str | os.PathLike[str]) -> Document:
    """The document in a file: JSON if its name ends so, else YAML. ``InputError`` for all problems."""
    name = os.fspath(path)
    try:
        raw = read_start(name, MAX_BYTES + 1)
    except FileNotFoundError as error:
        where = f"looked in {os.path.dirname(os.path.abspath(name))}"
        raise InputError("no such file", name, remedy=f"check the path; {where}") from error
    except IsADirectoryError as error:
        if not os.access(name, os.R_OK | os.X_OK):
            raise InputError("permission denied", name, remedy="check the permissions of the folder") from error
        raise InputError("is a folder", name, remedy="name a file in it") from error
    except PermissionError as error:
        raise InputError(
            "permission denied", name, remedy="check the permissions of the file and its folder"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        remedy = "check the path; a config in a pipe is read with `-`, from standard input"
        raise InputError(f"cannot be read: {reason}", name, remedy=remedy) from error
    return parse(raw, name, "json" if name.lower().endswith(".json") else "yaml")


@record(eq=False, frozen=False)
class _Staged:
    """A file about to be replaced. ``old`` is None for a new one."""

    name: str
    target: str
    temporary: str
    old: bytes | None = None
    replaced: bool = False


def write_all(files: Mapping[str, bytes | Iterable[bytes]]) -> None:
    """Write each file by replacing it with a finished temporary: all of them, or, where one fails, none.

    Mode is kept, and the owner where the system lets us; behind a link its target is written. Another hard link
    keeps the old content: it may be a store's or a backup's. ``InputError`` names the file that could not be
    written. A long content may come in pieces.
    """
    staged: list[_Staged] = []
    with _terminated_as_exception():
        try:
            for number, (name, content) in enumerate(files.items()):
                _stage(staged, name, content, number)
            # New ones first, so that at no moment one file names another that is not there yet.
            for file in sorted(staged, key=lambda file: file.old is not None):
                _replace(file)
        except BaseException:
            for file in reversed(staged):
                _undo(file)
            raise


def _stage(staged: list[_Staged], name: str, content: bytes | Iterable[bytes], number: int) -> None:
    target = os.path.realpath(name)
    if any(file.target == target for file in staged):
        raise InputError("is named twice, through a link", name, remedy="name each file once")
    folder, base = os.path.split(target)
    start = f".{base[:100]}."
    file = _Staged(name, target, os.path.join(folder, f"{start}{os.getpid()}-{number}.tmp"))
    try:
        _remove_stale(folder, start)
        if os.path.islink(target):
            raise OSError("the links go round in a circle")
        status = os.stat(target) if os.path.lexists(target) else None
        if status is not None:
            _check_writable(target, status)
            with open(target, "rb") as before:
                file.old = before.read()
        _write_temporary(staged, file, content, status)
    except OSError as error:
        raise _unwritable(name, error) from error


def _remove_stale(folder: str, start: str) -> None:
    """The temporaries that a killed process left of this file; a young one may be another process's at work."""
    for name in os.listdir(folder):
        if name.startswith(start) and TEMPORARY.fullmatch(name.removeprefix(start)):
            path = os.path.join(folder, name)
            with suppress(OSError):
                if os.stat(path).st_mtime < time.time() - STALE_SECONDS:
                    os.unlink(path)


def _check_writable(target: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a regular file")
    # A rename needs no permission on the file itself; one marked read-only is to stay nonetheless.
    if not os.access(target, os.W_OK):
        raise OSError("it is read-only")


def _write_temporary(
    staged: list[_Staged], file: _Staged, content: bytes | Iterable[bytes], status: os.stat_result | None
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with suppress(FileNotFoundError):
        os.unlink(file.temporary)
    # Known before it exists, so that an interrupt in between leaves nothing behind.
    staged.append(file)
    with os.fdopen(os.open(file.temporary, flags, 0o600 if status else 0o666), "wb") as temporary:
        for piece in (content,) if isinstance(content, bytes) else content:
            temporary.write(piece)
        temporary.flush()
        os.fsync(temporary.fileno())
    if status is None:
        return
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(file.temporary, status.st_uid, status.st_gid)
    os.chmod(file.temporary, stat.S_IMODE(status.st_mode))


def _replace(file: _Staged) -> None:
    try:
        # Said before it is done: undoing a replacement that did not happen is harmless.
        file.replaced = True
        os.replace(file.temporary, file.target)
    except OSError as error:
        raise _unwritable(file.name, error) from error


def _undo(file: _Staged) -> None:
    """No temporary stays, and a file that was replaced gets its old content back."""
    done = file.replaced and not os.path.lexists(file.temporary)
    with suppress(OSError):
        os.unlink(file.temporary)
    if not done:
        return
    with suppress(OSError):
        if file.old is None:
            os.unlink(file.target)
        else:
            _restore(file, file.old)


def _restore(file: _Staged, old: bytes) -> None:
    status = os.stat(file.target)
    again: list[_Staged] = []
    try:
        _write_temporary(again, file, old, status)
        os.replace(file.temporary, file.target)
    finally:
        with suppress(OSError):
            os.unlink(file.temporary)


def _unwritable(name: str, error: OSError) -> InputError:
    return InputError(
        f"cannot be written: {error.strerror or error}; nothing was changed", name, remedy="check its folder"
    )


@contextmanager
def _terminated_as_exception() -> Generator[None]:
    """SIGTERM as an exception, so that temporaries are removed; left alone where someone else handles it."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
