"""Plain values and texts: what kind they are, how they are shown, where they are read."""

import errno
import os
import re
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import isqrt
from pathlib import Path
from typing import Any, TypeGuard, cast

from advisor.errors import InputError


class _Regex:
    """A regular expression that is compiled when one of its methods is first asked for."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self.text, self.how = text, flags

    def __getattr__(self, name: str) -> Any:
        """A method of the compiled expression, which stays."""
        method = getattr(re.compile(self.text, self.how), name)
        setattr(self, name, method)
        return method


def regex(text: str, flags: int = 0) -> re.Pattern[str]:
    """What ``re.compile`` makes, later: a check uses few of them, and compiling all takes 3 % of its start."""
    return cast("re.Pattern[str]", _Regex(text, flags))


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a mapping, of whatever."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list, of whatever."""
    return isinstance(value, list)


def divisors(number: int) -> list[int]:
    """All divisors of a positive number, smallest first."""
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


class Buffers(dict[str, str]):
    """Texts that are not on disk, or not as they are there: by absolute path."""

    @classmethod
    def next_to(cls, file: str, texts: Mapping[str, str]) -> "Buffers":
        """Texts whose names are relative to the folder of ``file``."""
        folder = os.path.dirname(os.path.abspath(file))
        return cls({os.path.normpath(os.path.join(folder, name)): text for name, text in texts.items()})

    def at(self, path: str | os.PathLike[str]) -> bytes | None:
        """The text of a path as bytes; None where the disk is asked."""
        text = super().get(os.path.abspath(path))
        return None if text is None else text.encode()


def read_start(path: str | os.PathLike[str], most: int) -> bytes:
    """The first ``most`` bytes of a regular file, without ever waiting for them. ``OSError`` for anything else."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    # /proc/kmsg calls itself a regular file, and a file may become a pipe meanwhile.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb", buffering=0) as file:
        pieces: list[bytes] = []
        piece: bytes | None = b""
        while most > 0 and (piece := file.read(most)):
            pieces.append(piece)
            most -= len(piece)
    if not pieces and piece is None:
        raise OSError(errno.EAGAIN, "it is a pipe or a device, not a file")
    return b"".join(pieces)


def lies_in(root: str, path: str) -> bool:
    """Whether a file lies below a folder once links are followed; ``root`` is a real path."""
    return os.path.realpath(path).startswith(os.path.join(root, ""))


BOUND: ContextVar[str | None] = ContextVar("BOUND", default=None)
"""The real path of the folder outside of which nothing is shown, whatever repository it lies in; None without one."""


@contextmanager
def confined(root: str) -> Generator[None]:
    """What is done in here shows files below a folder alone."""
    token = BOUND.set(os.path.realpath(root))
    try:
        yield
    finally:
        BOUND.reset(token)


def is_out_of_bounds(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads out of the folder that all is confined to."""
    root = BOUND.get()
    try:
        return root is not None and not lies_in(root, os.fspath(path))
    except ValueError:  # no path: it holds a NUL
        return True


GIB = 1 << 30
MAX_BYTES = 10 << 20
"""Of a config file: more is not read."""
STEERING = (
    *range(9),
    *range(11, 32),
    *range(127, 160),
    0x61C,
    *range(0x200E, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
"""Code points of control characters, bidirectional marks and lone surrogates, tab and line feed aside."""
CONTROLS = dict.fromkeys(STEERING, "\ufffd")


def gib(bytes_: int) -> str:
    """``42.1 GiB``."""
    return f"{bytes_ / GIB:.1f} GiB"


def number(bytes_: int) -> str:
    """Bytes as a number of GiB with one decimal: ``42.1``, ``1,805.7``."""
    return f"{bytes_ / GIB:,.1f}"


def capital(words: str) -> str:
    """Words that begin a sentence."""
    return f"{words[:1].upper()}{words[1:]}"


def counted(count: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def seconds(value: float) -> str:
    """Digits of a time that count: ``0.46``, ``9.80``, ``12.3``, ``1,234``."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def program_on_path(name: str) -> str | None:
    """A program as the path has it, its relative folders aside, which may be what is looked at."""
    file = f"{name}.exe" if os.name == "nt" else name
    for folder in filter(os.path.isabs, os.get_exec_path()):
        path = os.path.join(folder, file)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def cache_folder() -> Path:
    """``XDG_CACHE_HOME`` (XDG Base Directory Specification 0.8), else ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def state_folder() -> Path:
    """``axolotl-advisor`` under ``XDG_STATE_HOME``, else ``~/.local/state``. ``RuntimeError`` without a home.

    Nothing relative counts (XDG Base Directory Specification 0.8): it would lead into the folder of a call.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state if os.path.isabs(state) else "~/.local/state").expanduser()
    if not folder.is_absolute():
        raise RuntimeError("the home folder is a relative path")
    return folder / "axolotl-advisor"


def printable(text: str) -> str:
    """Text of a file without what could steer a terminal; tabs become four spaces, line ends stay."""
    return text.translate(CONTROLS).replace("\t", "    ")


def path_shown(path: str) -> str:
    """A file's name on one line: what a name may hold beyond that can steer a terminal or forge a line."""
    return printable(path).replace("\n", "\ufffd")


def as_typed(*words: str) -> str:
    """A command on one line, as it may be pasted."""
    from shlex import join

    return path_shown(join(words))


def toml_library() -> Any:
    """The standard library's TOML parser, or on Python 3.10 the package that it came from."""
    import importlib

    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise InputError("Python 3.10 cannot read TOML", remedy="pip install tomli")
