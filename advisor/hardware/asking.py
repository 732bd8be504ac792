"""Programs that are asked about this machine: each has a few seconds and a few pages, whatever it does with them."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

TIMEOUT_SECONDS = 5
MOST_BYTES = 1 << 16


def answer_of(command: Sequence[str]) -> str:
    """What a program prints. ``TimeoutError`` where it hangs, ``ValueError`` where it fails or prints without end."""
    import subprocess
    from threading import Thread

    # In a session of its own it ends with all that it has started, and a Ctrl-C is not for it.
    process = subprocess.Popen(
        command,
        bufsize=0,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    said: list[bytes] = []
    # A thread can be left behind: not even a kill ends what waits inside a driver.
    reader = Thread(target=_read, args=(process, said), daemon=True)
    reader.start()
    try:
        reader.join(TIMEOUT_SECONDS)
        if reader.is_alive():
            raise TimeoutError(f"{command[0]} does not answer")
        if process.poll() != 0:
            raise ValueError(f"{command[0]} fails")
        return b"".join(said).decode()
    finally:
        _end(process)


def _read(process: "Popen[bytes]", said: list[bytes]) -> None:
    """Reads to the end and waits for it, but not beyond what an answer may be."""
    assert process.stdout is not None
    left = MOST_BYTES
    while left > 0 and (piece := process.stdout.read(left)):
        said.append(piece)
        left -= len(piece)
    if left > 0:
        process.wait()


def _end(process: "Popen[bytes]") -> None:
    if process.poll() is not None:
        return
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    with suppress(Exception):
        process.wait(TIMEOUT_SECONDS / 10)
