"""What is being done, on one line of the terminal, where it takes more than half a second; gone when it is done."""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import TextIO, TypeVar

from advisor.streams import is_terminal

PATIENCE = 0.5
PERIOD = 0.1
ERASED = "\r\x1b[K"
Item = TypeVar("Item")
_doing: list[str] = []


@contextmanager
def doing(what: str) -> Generator[None]:
    """Says what goes on meanwhile; the innermost is what a terminal shows."""
    _doing.append(what)
    try:
        yield
    finally:
        _doing.pop()


def each(items: Sequence[Item], what: Callable[[Item], str]) -> Iterator[Item]:
    """The items, each with its number and name while it is worked on."""
    for number, item in enumerate(items, 1):
        with doing(f"{number} of {len(items)}: {what(item)}" if len(items) > 1 else what(item)):
            yield item


@contextmanager
def shown() -> Generator[None]:
    """Shows on standard error what is being done, if that is a terminal. Nothing else may write there meanwhile."""
    stream = sys.stderr
    if not is_terminal(stream) or os.environ.get("TERM") == "dumb":
        yield
        return
    done = Event()
    painter = Thread(target=_paint, args=(stream, done), daemon=True)
    painter.start()
    try:
        yield
    finally:
        done.set()
        painter.join()


def _paint(stream: TextIO, done: Event) -> None:
    if done.wait(PATIENCE):
        return
    from shutil import get_terminal_size

    while True:
        room = get_terminal_size((80, 24)).columns - 1
        what = "".join(char if char.isprintable() else "?" for char in _doing[-1]) if _doing else ""
        stream.write(ERASED + what.encode(stream.encoding, "replace").decode(stream.encoding)[:room])
        stream.flush()
        if done.wait(PERIOD):
            break
    stream.write(ERASED)
    stream.flush()
