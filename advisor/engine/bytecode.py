"""The bytecode of a folder's rules in one file: to open and check 200 files takes as long as to run them."""

import marshal
import os
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType

Stamps = dict[str, tuple[int, int]]
"""Of each file, by path: when it was last changed, in nanoseconds, and its size."""
Codes = dict[str, CodeType | None]
"""Of each file, by path; None for one that does not compile."""


def bytecode(folder: Path, stages: tuple[str, ...]) -> Codes:
    """The code of each rule file under ``folder``.

    Kept in ``__pycache__`` as Python keeps a module's, and made again once any file has changed.
    """
    stamps = stamps_of(folder, stages)
    kept = Path(cache_from_source(str(folder / "rules.py")))
    return read(kept, stamps) or made(kept, stamps)


def stamps_of(folder: Path, stages: tuple[str, ...]) -> Stamps:
    """The rule files of the stages, in the order of their names."""
    found: Stamps = {}
    for stage in stages:
        with os.scandir(folder / stage) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(".py") and not entry.name.startswith("_"):
                    facts = entry.stat()
                    found[entry.path] = facts.st_mtime_ns, facts.st_size
    return found


def read(kept: Path, stamps: Stamps) -> Codes | None:
    """The codes that were kept, if they are of these very files and this Python."""
    try:
        data = kept.read_bytes()
        if not data.startswith(MAGIC_NUMBER):
            return None
        of, codes = marshal.loads(memoryview(data)[len(MAGIC_NUMBER) :])
    except (OSError, EOFError, ValueError, TypeError):
        return None
    return codes if of == stamps else None


def made(kept: Path, stamps: Stamps) -> Codes:
    """The codes of the files one by one, kept for the next process where Python may write bytecode."""
    codes = {path: code_of(path) for path in stamps}
    nearest = kept.parent if kept.parent.is_dir() else kept.parent.parent
    if all(codes.values()) and not sys.dont_write_bytecode and os.access(nearest, os.W_OK):
        SourceFileLoader("rules", str(kept)).set_data(str(kept), MAGIC_NUMBER + marshal.dumps((stamps, codes)))
    return codes


def code_of(path: str) -> CodeType | None:
    """The code of one file, from its own bytecode where there is some."""
    try:
        return SourceFileLoader(path, path).get_code(path)
    except (SyntaxError, UnicodeDecodeError, OSError):
        return None
