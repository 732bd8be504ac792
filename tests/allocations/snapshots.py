"""Snapshots of torch's allocator, replayed: does every allocation get the address that torch gave it?

A snapshot has the trace of a process, and the segments at its end. What was allocated before the trace began follows
from undoing the trace from the end.
"""

import gzip
import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.allocations.allocator.allocator import Allocator, rounded
from advisor.allocations.allocator.blocks import MIB, SMALL, Block, Pool, link

Event = tuple[str, int, int, int]
"""Action, address, size, stream."""


@dataclass
class Snapshot:
    """A trace, what is alive at its end by address, and the segments: size, small or not, stream."""

    events: list[Event]
    live: dict[int, int]
    segments: dict[int, tuple[int, bool, int]]


@dataclass
class Replay:
    """How a replay differs from what torch did."""

    allocations: int = 0
    elsewhere: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Address that torch gave, and address here."""
    segments_asked: int = 0
    """Segments of which torch did not ask at that moment."""
    segments_released: int = 0
    """Segments that one of both released."""
    end: bool = False
    """Whether the same blocks are alive in the end, of as much reserved memory."""
    peak: bool = False


def read(path: Path) -> Snapshot:
    """A snapshot in the form of plain numbers."""
    found: Mapping[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    events = [(str(a), int(b), int(c), int(d)) for a, b, c, d in max(found["traces"], key=len)]
    live: dict[int, int] = {}
    segments: dict[int, tuple[int, bool, int]] = {}
    for one in found["segments"]:
        segments[one["address"]] = (one["total_size"], one["type"] == "small", one["stream"])
        live |= {address: size for address, size, _, state in one["blocks"] if state != "inactive"}
    return Snapshot(events, live, segments)


def before(snapshot: Snapshot) -> Snapshot:
    """The state before the trace: its events undone, the last first."""
    live, segments = dict(snapshot.live), dict(snapshot.segments)
    for action, address, size, stream in reversed(snapshot.events):
        match action:
            case "alloc":
                live.pop(address, None)
            case "free_completed":
                live[address] = rounded(size, 0)
            case "segment_alloc":
                segments.pop(address)
            case "segment_free":
                segments[address] = (size, size == 2 * MIB, stream)
            case _:
                pass
    return Snapshot(snapshot.events, live, segments)


def stocked(start: Snapshot, known: Mapping[int, int]) -> tuple[Allocator, dict[int, Block]]:
    """An allocator in the state before the trace, and its blocks by address.

    A block was larger than asked where no split was worth it; ``known`` has such sizes, which the file does not.
    """
    allocator = Allocator()
    used: dict[int, Block] = {}
    live = {address: known.get(address, size) for address, size in start.live.items()}
    addresses = sorted(live)
    for address, (size, small, stream) in start.segments.items():
        pool = allocator.pool(1 if small else 2 * MIB, stream)
        allocator.reserved += size
        last: Block | None = None
        for block in laid_out(pool, address, size, live, addresses):
            if last is not None:
                link(last, block)
            last = block
            if block.free:
                pool.put(block)
            else:
                used[block.address] = block
                allocator.allocated += block.size
    allocator.peak_reserved = allocator.reserved
    return allocator, used


def laid_out(pool: Pool, start: int, size: int, live: Mapping[int, int], addresses: list[int]) -> list[Block]:
    """The blocks of one segment; what is free behind a large block and too small to be split off belongs to it."""
    found: list[Block] = []
    at, end = start, start + size
    for address in (*addresses[bisect_left(addresses, start) : bisect_left(addresses, end)], end):
        if found and not pool.small and address - at <= SMALL:
            found[-1].size = address - found[-1].address
        elif address > at:
            found.append(Block(pool, at, address - at, start))
        if address < end:
            found.append(Block(pool, address, live[address], start))
            found[-1].free = False
            at = address + live[address]
    return found


def replay(snapshot: Snapshot) -> Replay:
    """The replay with which sizes that the file does not have follow from the first address that contradicts them."""
    known: dict[int, int] = {}
    start = before(snapshot)
    for _ in range(40):
        result, larger = once(snapshot, start, known)
        if not result.elsewhere or not larger:
            return result
        known |= larger
    raise AssertionError("sizes do not settle")


def once(snapshot: Snapshot, start: Snapshot, known: Mapping[int, int]) -> tuple[Replay, dict[int, int]]:
    """One replay; and, where an address first differs, which blocks must have been larger for torch to be right."""
    allocator, used = stocked(start, known)
    result, larger = Replay(), dict[int, int]()
    offered: list[tuple[int, int]] = []

    def place(size: int) -> int:
        if offered and offered[0][1] == size:
            return offered.pop(0)[0]
        result.segments_asked += 1
        return allocator.upwards(size)

    allocator.place = place
    released: set[int] = set()
    reserved = peak = allocator.reserved
    for action, address, size, stream in snapshot.events:
        if released and action != "segment_free":
            result.segments_released += len(whole(allocator) ^ released)
            allocator.release()
            released = set()
        match action:
            case "segment_alloc":
                offered.append((address, size))
                reserved += size
                peak = max(peak, reserved)
            case "segment_free":
                released.add(address)
                reserved -= size
            case "alloc":
                result.allocations += 1
                if not result.elsewhere:
                    larger = owners(allocator, address)
                block = used[address] = allocator.malloc(size, stream)
                if block.address != address:
                    result.elsewhere.append((address, block.address))
            case "free_completed" if address in used:
                allocator.free(used.pop(address))
            case _:
                pass
    result.end = {b.address: b.size for b in used.values()} == snapshot.live and allocator.reserved == sum(
        size for size, _, _ in snapshot.segments.values()
    )
    result.peak = allocator.peak_reserved == peak
    result.segments_asked += len(offered)
    return result, larger if result.elsewhere else {}


def whole(allocator: Allocator) -> set[int]:
    """Addresses of the segments that are free as a whole."""
    free = [block for pool in allocator.pools.values() for _, _, block in pool.free]
    return {block.address for block in free if block.whole}


def owners(allocator: Allocator, address: int) -> dict[int, int]:
    """The used block that must reach up to ``address``, where that lies inside a free one, and its size then."""
    for pool in allocator.pools.values():
        for size, start, block in pool.free:
            left = block.before
            if start < address < start + size and address - start <= SMALL and left is not None and not left.free:
                return {left.address: address - left.address}
    return {}
