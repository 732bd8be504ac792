"""Whether there is anybody to ask, and whether what would be written is theirs."""

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

from advisor.documents.repository import checkout_of
from advisor.streams import is_terminal
from advisor.util import lies_in

RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK")
SIZES = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")
"""How many processes were started with this one, where it is a rank."""


def is_first() -> bool:
    """Whether this is the rank that speaks."""
    return not any(os.environ.get(name, "0") != "0" for name in RANKS)


def is_alone() -> bool:
    """Whether no other rank was started with this one: it would have ended by the time of an answer."""
    is_rank = any(name in os.environ for name in RANKS)
    sizes = (os.environ.get(name, "") for name in SIZES)
    return not (is_rank and any(size.isdecimal() and int(size) > 1 for size in sizes))


def is_asked() -> bool:
    """Whether a person is at the terminal of this process: not in CI, and not of a job in the background."""
    unattended = os.environ.get("CI") or os.environ.get("PRE_COMMIT")
    return is_first() and not unattended and is_terminal(sys.stdin) and is_terminal(sys.stderr) and _in_foreground()


def _in_foreground() -> bool:
    """Whether reading from the terminal would not stop this process; so too where nothing controls jobs."""
    with suppress(OSError, ValueError, AttributeError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return True


def are_own(files: Iterable[str]) -> bool:
    """Whether all files lie in the repository of the working directory, else in that directory, and may be written."""
    here = os.path.realpath(os.getcwd())
    root = checkout_of(here) or here
    return all(lies_in(root, file) and _may_be_written(os.path.realpath(file)) for file in files)


def _may_be_written(file: str) -> bool:
    """Whether a file, or one of its name, can be put there."""
    if not os.access(os.path.dirname(file), os.W_OK | os.X_OK):
        return False
    if not os.path.lexists(file):
        return True
    return stat.S_ISREG(os.stat(file).st_mode) and os.access(file, os.W_OK)
