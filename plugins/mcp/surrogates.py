"""Half a surrogate pair in a request, which JSON can write and no text holds: the SDK would not answer its line."""

import io
import re
from typing import Any, TextIO

ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""One escape of JSON, or a whole pair; the group is half of one."""


class Lines(io.BufferedIOBase):
    """Standard input by line, each without half a pair."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def readable(self) -> bool:
        """It is read."""
        return True

    def read1(self, _size: int = -1, /) -> bytes:
        """The next line; empty at the end."""
        return _repaired(self.stream.buffer.readline())


def _repaired(line: bytes) -> bytes:
    """A line of JSON with U+FFFD for half a pair."""
    return ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], line)


def whole(stream: TextIO) -> TextIO:
    """Standard input, with every line one that can be read."""
    lines: Any = Lines(stream)
    return io.TextIOWrapper(lines, encoding="utf-8", errors="replace")
