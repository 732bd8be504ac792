"""Runs that were measured on this machine: a line of JSON each, which training writes and estimates read."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from advisor.record import record
from advisor.util import state_folder

MOST_BYTES = 1 << 16
"""Older runs than these at the end of the file do not count."""


@record
class MeasuredRun:
    """What a run that went through has shown. Bytes of one GPU; nothing in it names a file or a dataset."""

    kind: str
    """As ``memory/run_kind.py`` has it."""
    gpu: str
    """The catalogue's id."""
    gpus: int
    expandable: bool
    estimated: int
    """The allocated peak that the advisor foresaw."""
    allocated: int
    reserved: int
    steps: int
    torch: str
    tokens_per_second_per_gpu: float = 0.0
    """Of the first steps, padding included; 0 where it was not measured."""
    family: str = ""
    """``model_type`` of the model; empty, with no ``parameters``, in older lines."""
    parameters: int = 0


KINDS: dict[str, Any] = dict(MeasuredRun.__annotations__)
LATER: dict[str, Any] = {"tokens_per_second_per_gpu": 0.0, "family": "", "parameters": 0}
"""Fields that older lines do not have."""


def path() -> Path:
    """``runs.jsonl`` in the user's state."""
    return state_folder() / "runs.jsonl"


@record
class _History:
    """The runs of this machine's file, and how many of its lines are none."""

    runs: tuple[MeasuredRun, ...] = ()
    skipped: int = 0


@cache
def history() -> _History:
    """The latest runs of this machine, read once; none where the file is not there or cannot be read."""
    try:
        if not os.path.isfile(path()):
            return _History()
        with path().open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - MOST_BYTES)
            file.seek(start)
            # The first line may have begun before.
            lines = file.read().splitlines()[bool(start) :]
    except (OSError, RuntimeError):
        return _History()
    runs = tuple(read_lines(lines))
    return _History(runs, sum(bool(line.strip()) for line in lines) - len(runs))


def measured_here() -> tuple[MeasuredRun, ...]:
    """The latest runs of this machine."""
    return history().runs


def read_lines(lines: list[bytes]) -> Iterator[MeasuredRun]:
    """The runs among the lines; a line that is not one, or not whole, is skipped."""
    return (run for line in lines if (run := run_of(line)) is not None)


def run_of(line: bytes) -> MeasuredRun | None:
    """The run of a line; None if it is not one."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        said: dict[str, Any] = LATER | json.loads(line)
        run = MeasuredRun(**{name: said[name] for name in KINDS})
        if all(type(said[name]) is kind for name, kind in KINDS.items()) and run.reserved >= run.allocated > 0:
            return run
    return None


def append(run: MeasuredRun) -> Path:
    """Adds a run to the file, which stays locked meanwhile. ``OSError`` where it cannot be written."""
    target = path()
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab+") as file:
        _lock(file.fileno())
        file.seek(0, os.SEEK_END)
        torn = bool(file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n")
        file.write((b"\n" if torn else b"") + json.dumps(asdict(run)).encode() + b"\n")
    return target


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows, where axolotl does not train
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
