"""Tapes through the allocator: what torch reserves, and with how little a run goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING

from advisor.allocations.allocator.allocator import Allocator, OutOfMemoryError
from advisor.allocations.allocator.settings import settings_of
from advisor.allocations.step.assembly import recorded

if TYPE_CHECKING:
    from advisor.allocations.allocator.blocks import Block
    from advisor.allocations.allocator.settings import Settings
    from advisor.allocations.autograd.autograd import Event
    from advisor.run import Run

ORDERS = 15
"""Orders of what cannot be known that decide whether a run goes through."""
SHOWN_ORDERS = 2


def replayed(
    events: Iterable[Event],
    settings: Settings,
    limit: int | None = None,
    place: Callable[[int], int] | None = None,
) -> Allocator:
    """The allocator after all events. Raises ``OutOfMemoryError`` at the limit."""
    allocator = Allocator(settings, limit, place)
    live: dict[int, Block] = {}
    malloc, free = allocator.malloc, allocator.free
    for number, size in events:
        if size:
            live[number] = malloc(size)
        elif not number:
            allocator.release()
        else:
            free(live.pop(number))
    return allocator


def scattered(seed: int) -> Callable[[int], int]:
    """Addresses of new segments in no order, as cudaMalloc may give them."""
    random = Random(seed)
    return lambda _size: random.randrange(1 << 30) << 40


def orders(run: Run, count: int) -> Iterable[tuple[list[Event], Callable[[int], int] | None]]:
    """The tape in the order of the modules, and in ``count`` others, with other addresses."""
    tape = recorded(run)
    yield tape.events, None
    for seed in range(count):
        yield tape.loaded_in_other_order(seed), scattered(seed)


def reserved_peaks(run: Run) -> tuple[int, int]:
    """The least and the most that torch reserves on a roomy card, over some orders."""
    settings = settings_of(run)
    found = [replayed(events, settings, place=place).peak_reserved for events, place in orders(run, SHOWN_ORDERS)]
    return min(found), max(found)


def goes_through(run: Run, limit: int) -> bool:
    """Whether some order of what cannot be known goes through with ``limit`` bytes."""
    return any(passes(events, settings_of(run), limit, place) for events, place in orders(run, ORDERS))


def passes(events: list[Event], settings: Settings, limit: int, place: Callable[[int], int] | None) -> bool:
    """Whether the events go through with ``limit`` bytes."""
    try:
        replayed(events, settings, limit, place)
    except OutOfMemoryError:
        return False
    return True
