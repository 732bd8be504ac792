"""Long work ends between two estimates, where nothing is half done, once nobody waits for it any more."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event


class Cancelled(BaseException):
    """Raised inside of work that nobody waits for any more."""


_dropped: ContextVar[Event | None] = ContextVar("dropped", default=None)


@contextmanager
def ends_with(dropped: Event) -> Generator[None]:
    """What is done inside, in this thread, ends soon after the event is set."""
    before = _dropped.set(dropped)
    try:
        yield
    finally:
        _dropped.reset(before)


def end_if_cancelled() -> None:
    """Raises ``Cancelled`` where nobody waits any more."""
    event = _dropped.get()
    if event is not None and event.is_set():
        raise Cancelled
