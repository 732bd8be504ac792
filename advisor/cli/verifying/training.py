"""A training that is watched from outside: started in a group of its own, and gone with all it started."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from advisor.cli.verifying.request import VARIABLE
from advisor.cli.verifying.seen import seen_in
from advisor.progress import doing

LOG = "log"
MOST_BYTES = 4 << 20
"""Of the end of a log."""
PERIOD = 0.2
PATIENCE = 20.0
"""Seconds for processes to end once they are asked to."""
LONGEST_PLACE = 70
"""Of a socket's name Linux takes 107 characters (unix(7)), of which multiprocessing adds 32."""
QUIET = {"AXOLOTL_DO_NOT_TRACK": "1", "WANDB_MODE": "disabled", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
FAILURE = re.compile(r"(?:\[?rank ?\d+\]?:? )?((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|Exit)\b(?:: .*)?)$")
OF_LAUNCHERS = re.compile(r"(subprocess\.)?CalledProcessError|(torch\.\S*)?ChildFailedError|.*SignalException")
"""What a launcher says after a process of its own has failed."""


class TerminatedError(BaseException):
    """Somebody asked this process to end."""


@contextmanager
def ended_by_signals() -> Generator[None]:
    """SIGTERM and SIGHUP raise in here, so that what was started is ended and what was written is removed."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TerminatedError

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def trained(tokens: Sequence[str], folder: str, environment: Mapping[str, str]) -> int:
    """The exit code of a command, whose output goes into a log in ``folder``. ``OSError`` if it cannot be started."""
    said = {**os.environ, **QUIET, **environment, **_temporary(folder), VARIABLE: folder}
    with (Path(folder) / LOG).open("wb") as log:
        process = subprocess.Popen(
            tokens, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=said, start_new_session=True
        )
    try:
        while process.poll() is None:
            seen = seen_in(folder)
            with doing(f"{tokens[0]}: {seen.during if seen else 'starting'}"):
                time.sleep(PERIOD)
    finally:
        _end(process, folder)
    return process.returncode


def _temporary(folder: str) -> dict[str, str]:
    """A place for temporary files inside ``folder``, unless the names of sockets would get too long there."""
    own = Path(folder) / "tmp"
    own.mkdir()
    return {"TMPDIR": str(own)} if len(str(own)) <= LONGEST_PLACE else {}


def _end(process: "subprocess.Popen[bytes]", folder: str) -> None:
    """Ends what was started: launchers give their workers sessions of their own, which no signal to a group reaches."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with suppress(OSError):
                os.killpg(process.pid, number)
        there = [*_started_for(folder)]
        for one in there:
            with suppress(OSError):
                os.kill(one, number)
        until = time.monotonic() + PATIENCE
        while there and time.monotonic() < until:
            process.poll()
            there = [one for one in there if one in set(_started_for(folder))]
            time.sleep(PERIOD / 4)
        if not there:
            break
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)


def _started_for(folder: str) -> Iterator[int]:
    """The processes whose environment names the folder, which is this call's alone. Linux, where axolotl trains."""
    mark = f"{VARIABLE}={folder}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(path.name) != os.getpid() and mark in (path / "environ").read_bytes().split(b"\0"):
                yield int(path.name)


def log_of(folder: str) -> str:
    """The end of what the training said."""
    path = Path(folder) / LOG
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MOST_BYTES))
        return file.read().decode(errors="replace")
    return ""


def last_error(log: str) -> str:
    """What went wrong in the words of the process that trained; empty where it says nothing."""
    lines = log.replace("\r", "\n").splitlines()
    places = [
        (number, match[1])
        for number, line in enumerate(lines)
        if (match := FAILURE.match(line.strip())) and not OF_LAUNCHERS.match(match[1])
    ]
    if not places:
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    number, said = places[-1]
    if "ValidationError" in said:
        below = (line.strip().partition(" [type=")[0] for line in lines[number + 1 : number + 3])
        said = ": ".join(line.removeprefix("Value error, ") for line in below if not line.startswith("For further"))
        return f"axolotl refuses the config: {said}"
    return said
