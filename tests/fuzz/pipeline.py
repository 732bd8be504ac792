"""One input through the whole pipeline in one process: parse, open, check, render, fix, and check again."""

import faulthandler
import os
import sys
from pathlib import Path

from advisor.documents import read
from advisor.engine.check import Options, check_run
from advisor.errors import InputError
from advisor.opening import Context, open_run
from advisor.report import render_check

from ..promises import kept
from .check import SECONDS


def piped(folder: Path, raw: bytes, other: tuple[str, bytes | None], gpus: str, form: str) -> str:
    """What became of an input: ``refused``, ``as it was`` or ``patched``, with every promise of the fix kept."""
    os.chdir(folder)
    (folder / "run.yaml").write_bytes(raw)
    name, content = other
    if content is not None:
        (folder / name).write_bytes(content)
    faulthandler.dump_traceback_later(6 * SECONDS, exit=True, file=sys.__stderr__)
    try:
        return outcome(Path("run.yaml"), Context(gpus=gpus), form)
    finally:
        faulthandler.cancel_dump_traceback_later()


def outcome(file: Path, context: Context, form: str) -> str:
    """The same, of a file that is there."""
    try:
        opened = open_run(read(file), context)
    except InputError:
        return "refused"
    render_check([check_run(opened, Options())], form)
    fixes = [kept(file, context, Options(), unsafe=unsafe) for unsafe in (False, True)]
    broken = [f"{kind}: {how}" for one in fixes for kind, how in one.broken.items()]
    assert not broken, "\n".join(broken)
    return "patched" if any(one.wrote for one in fixes) else "as it was"
