"""Work that waits for a pause, and is dropped at the next key."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from advisor.plugins.language_server.pausing import Pausing

from advisor.engine.cancellation import end_if_cancelled


def run(used: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(used(), 60))


def test_who_waits_does_not_wait_for_the_pause():
    async def used() -> None:
        told: list[int] = []
        work = Pausing(lambda: 7, told.append, pause=1000)
        assert await work.wait() == 7 and told == [7]

    run(used)


def test_dropped_work_ends_and_tells_nobody():
    started, ended = threading.Event(), threading.Event()

    def work() -> int:
        started.set()
        try:
            while True:
                end_if_cancelled()
        finally:
            ended.set()

    async def used() -> None:
        told: list[int] = []
        endless = Pausing(work, told.append, pause=1000)
        waiting = asyncio.create_task(endless.wait())
        await asyncio.to_thread(started.wait)
        endless.drop()
        assert await waiting is None
        await asyncio.to_thread(ended.wait)
        assert told == []

    run(used)


def test_dropped_work_ends_only_where_nothing_is_half_done():
    started, dropped, ended = threading.Event(), threading.Event(), threading.Event()
    done: list[str] = []

    def work() -> None:
        started.set()
        dropped.wait()
        sum(range(100_000))
        done.append("one whole piece")
        try:
            end_if_cancelled()
            done.append("another")
        finally:
            ended.set()

    async def used() -> None:
        busy = Pausing(work, lambda _: None, pause=0)
        await asyncio.to_thread(started.wait)
        busy.drop()
        dropped.set()
        await asyncio.to_thread(ended.wait)
        assert done == ["one whole piece"]

    run(used)


def test_what_is_dropped_before_the_pause_never_begins():
    async def used() -> None:
        begun: list[int] = []
        work = Pausing(lambda: begun.append(1), begun.append, pause=0.01)
        work.drop()
        await asyncio.sleep(0.05)
        assert await work.wait() is None and begun == []

    run(used)


def test_work_that_fails_is_no_answer():
    async def used() -> None:
        assert await Pausing(lambda: 1 // 0, lambda _: None).wait() is None

    run(used)
