"""Work that waits until typing pauses, and is dropped at the next key."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from advisor.engine.cancellation import Cancelled, ends_with

Answer = TypeVar("Answer")
PAUSE = 0.3
"""Seconds without a key."""


class Pausing(Generic[Answer]):
    """One piece of work about one text as it is now; without a ``pause`` it begins once somebody waits for it."""

    def __init__(self, work: Callable[[], Answer], then: Callable[[Answer], None], pause: float | None = PAUSE) -> None:
        self.work, self.then = work, then
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Answer | None] = self.loop.create_future()
        self.thread: threading.Thread | None = None
        self.dropped = threading.Event()
        self.timer = self.loop.call_later(pause, self.start) if pause is not None else None

    def start(self) -> None:
        """Begins at once; does nothing if it has begun, or was dropped."""
        self.stop_waiting()
        if self.thread is None and not self.answer.done():
            self.thread = threading.Thread(target=self.run, daemon=True)
            self.thread.start()

    def stop_waiting(self) -> None:
        """The pause is over."""
        if self.timer is not None:
            self.timer.cancel()

    def run(self) -> None:
        """In a thread of its own, so that keys are answered meanwhile."""
        with ends_with(self.dropped), suppress(Cancelled, RuntimeError):  # nobody waits, or the loop is closed
            self.loop.call_soon_threadsafe(self.finish, self.attempted())

    def attempted(self) -> Answer | None:
        """The answer; None where the work fails: a plan that cannot be made is no error of the text."""
        try:
            return self.work()
        except Exception:
            return None

    def finish(self, answer: Answer | None) -> None:
        """Hands out the answer, unless a key came in between."""
        if not self.answer.done():
            self.answer.set_result(answer)
            if answer is not None:
                self.then(answer)

    def drop(self) -> None:
        """Whoever waits gets None; the thread ends before its next estimate, and takes no more time from the keys.

        Never in the middle: a thread that is stopped in an import leaves half a module behind for those that go on.
        """
        self.stop_waiting()
        self.dropped.set()
        if not self.answer.done():
            self.answer.set_result(None)

    async def wait(self) -> Answer | None:
        """The answer, without waiting for a pause; None if it was dropped."""
        self.start()
        return await asyncio.shield(self.answer)
