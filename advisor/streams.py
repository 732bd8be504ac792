"""Standard input, output and error: closed or full, they stop nothing that can go on without them."""

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from advisor.util import path_shown

LOST = (OSError, ValueError, AttributeError)
"""What writing to a full, a closed, or no stream at all raises."""
CLOSED = (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_RDONLY))
"""In the order of their descriptors, with the wrong direction: what a closed stream cannot do fails as before."""
_hushed = False


def take_places() -> None:
    """Takes the places of streams that were closed, so that no file that is opened later becomes one of them.

    A command that replaces this process finds them closed again: what Python opens is not inherited.
    """
    for number, (name, flags) in enumerate(CLOSED):
        with suppress(OSError):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, flags)
            if getattr(sys, name) is None:
                setattr(sys, name, _stream(number))


def _stream(number: int) -> io.TextIOWrapper:
    """Without a buffer for output: the interpreter does not try again at its end what could not be written."""
    if number == 0:
        return open(number, closefd=False)
    return io.TextIOWrapper(open(number, "wb", buffering=0, closefd=False), write_through=True)


def write_all_letters() -> None:
    """What a stream's encoding lacks is written as another letter."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def aside(text: str, *, color: bool | None = None) -> None:
    """Writes a text to standard error, if it can be written there."""
    if not _hushed:
        import click

        with suppress(*LOST):
            click.echo(text, err=True, color=color)


def tell(line: str) -> None:
    """Says one line in the advisor's name."""
    aside(f"advisor: {path_shown(line)}")


@contextmanager
def hushed(*, by: bool = True) -> Generator[None]:
    """Nothing is said meanwhile, as in a rank that is not its node's first."""
    global _hushed
    before, _hushed = _hushed, _hushed or by
    try:
        yield
    finally:
        _hushed = before


@contextmanager
def unheard() -> Generator[None]:
    """What is written to standard output in here may be lost."""
    try:
        yield
    except OSError:
        silence_output()


def silence_output() -> None:
    """Nothing more goes to standard output: the interpreter's last flush would fail there, with a code of its own."""
    with suppress(*LOST):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush() -> None:
    """Writes what is still to be written, if it can be."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(*LOST):
            stream.flush()


def is_terminal(stream: Any) -> bool:
    """Whether a person looks at a stream; one that is closed, or not there, is no terminal."""
    try:
        return bool(stream.isatty())
    except LOST:
        return False
