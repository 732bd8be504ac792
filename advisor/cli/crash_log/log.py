"""The end of a log, as the patterns see it."""

import sys
from pathlib import Path

from advisor.errors import InputError
from advisor.util import regex

MOST_BYTES = 64 << 20
"""Of a log, its end: a run dies last."""
MOST_OF_A_LINE = 4000
LONG = regex(rf"(?<![^\n\r])[^\n\r]{{{MOST_OF_A_LINE + 1},}}")


def log_text(log: str) -> str:
    """The end of a log; ``-`` is standard input. Raises ``InputError`` if it cannot be read."""
    try:
        if log == "-":
            return sys.stdin.buffer.read()[-MOST_BYTES:].decode(errors="replace")
        with Path(log).open("rb") as stream:
            stream.seek(max(0, Path(log).stat().st_size - MOST_BYTES))
            return stream.read().decode(errors="replace")
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", log, remedy="name the log of the run") from error


def clipped(log: str) -> str:
    """The log with long lines cut in the middle, so that no pattern works on more than ``MOST_OF_A_LINE`` of one."""
    half = MOST_OF_A_LINE // 2
    return LONG.sub(lambda line: line[0][:half] + line[0][-half:], log)
