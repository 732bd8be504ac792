"""torch's caching allocator without a GPU: for each request the block that torch would choose.

Read in c10/cuda/CUDACachingAllocator.cpp@2.13.0; replayed against snapshots of real steps, in which every block lies
where it says. Private pools of CUDA graphs are left out.
"""

from bisect import bisect_left
from collections.abc import Callable

from advisor.allocations.allocator.blocks import MIB, SMALL, Block, Pool, cut, merge
from advisor.allocations.allocator.expandable import grow, unmap
from advisor.allocations.allocator.settings import Settings

LEAST = 512
LARGE_BUFFER = 20 * MIB
"""Segments of requests below 10 MiB, and how much larger than asked a block may be that is never split."""


class OutOfMemoryError(MemoryError):
    """The limit is reached, with the cache released."""


class Allocator:
    """Serves requests from cached blocks, and new segments up to ``limit`` bytes.

    ``place`` says where a new segment of some size lies, which is cudaMalloc's business; upwards without it.
    """

    def __init__(
        self, settings: Settings | None = None, limit: int | None = None, place: Callable[[int], int] | None = None
    ) -> None:
        self.settings, self.limit = settings or Settings(), limit
        self.place = place or self.upwards
        self.pools: dict[tuple[bool, int], Pool] = {}
        self.top = 1 << 40
        self.reserved = self.allocated = self.peak_reserved = self.peak_allocated = 0
        self.retries = 0

    def upwards(self, size: int) -> int:
        """The address behind the last segment."""
        address = self.top
        self.top += size
        return address

    def pool(self, size: int, stream: int) -> Pool:
        """The pool that serves requests of a size on a stream."""
        key = (size <= SMALL, stream)
        found = self.pools.get(key)
        if found is None:
            found = self.pools[key] = Pool(*key)
        return found

    def malloc(self, size: int, stream: int = 0) -> Block:
        """The block for a request. Raises ``OutOfMemoryError`` if there is none even without the cache."""
        size = rounded(size, self.settings.roundup_power2_divisions)
        pool = self.pool(size, stream)
        block = self.best_fit(pool, size)
        if block is None:
            block = self.new(pool, size)
            self.peak_reserved = max(self.peak_reserved, self.reserved)
        if self.splits(block, size):
            pool.put(cut(block, size))
        block.free = False
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def free(self, block: Block) -> None:
        """Gives a block back to its pool, merged with its free neighbours."""
        self.allocated -= block.size
        block.free = True
        merge(block)
        block.pool.put(block)

    def best_fit(self, pool: Pool, size: int) -> Block | None:
        """The smallest free block that is large enough, the lowest of these: get_free_block."""
        free = pool.free
        index = bisect_left(free, (size,))
        if index == len(free):
            return None
        if self.settings.expandable_segments:
            best = _could_grow_to(free[index][2])
            while index + 1 < len(free) and (larger := _could_grow_to(free[index + 1][2])) < best:
                index, best = index + 1, larger
        largest, found = self.settings.max_split_size, free[index][0]
        if largest is not None and (found >= largest if size < largest else found >= size + LARGE_BUFFER):
            return None
        block = free[index][2]
        del free[index]
        return block

    def splits(self, block: Block, size: int) -> bool:
        """Whether what is left of a block becomes one of its own: should_split."""
        rest = block.size - size
        if block.pool.small or self.settings.expandable_segments:
            return rest >= LEAST
        largest = self.settings.max_split_size
        return rest > SMALL and (largest is None or size < largest)

    def new(self, pool: Pool, size: int) -> Block:
        """Memory from the card, if need be after releasing large blocks, or all that are whole."""
        block = self.grow(pool, size)
        if block is None and self.release_large(pool, size):
            block = self.grow(pool, size)
        if block is None:
            self.retries += 1
            self.release()
            block = self.grow(pool, size)
        if block is None:
            raise OutOfMemoryError(size)
        return block

    def grow(self, pool: Pool, size: int) -> Block | None:
        """A new segment, or more of an expandable one; None at the limit."""
        if self.settings.expandable_segments:
            return grow(self, pool, size)
        size = _segment_size(size)
        if self.limit is not None and self.reserved + size > self.limit:
            return None
        self.reserved += size
        address = self.place(size)
        return Block(pool, address, size, address)

    def release(self) -> None:
        """Gives back what nobody uses of all segments: release_cached_blocks."""
        for pool in self.pools.values():
            for _, _, block in list(pool.free):
                if self.settings.expandable_segments:
                    self.reserved -= unmap(block)
                elif block.whole:
                    self.drop(block)

    def drop(self, block: Block) -> None:
        """Gives a whole segment back."""
        block.pool.take(block)
        self.reserved -= block.size

    def release_large(self, pool: Pool, size: int) -> bool:
        """Gives back blocks of the size that is never split, as many as the request is large.

        release_available_cached_blocks.
        """
        largest = self.settings.max_split_size
        if largest is None or self.settings.expandable_segments:
            return False
        wanted = max(size, largest)
        index = bisect_left(pool.free, (wanted,))
        if index < len(pool.free):
            self.drop(pool.free[index][2])
            return True
        given = 0
        while given < wanted and pool.free and pool.free[-1][0] >= largest:
            given += pool.free[-1][0]
            self.drop(pool.free[-1][2])
        return given >= wanted


def _could_grow_to(block: Block) -> int:
    """The size of a block with the unmapped stretch behind it."""
    after = block.after
    return block.size + (after.size if after is not None and not after.mapped else 0)


def rounded(size: int, divisions: int) -> int:
    """The size of the block for a request: round_size."""
    if size < LEAST:
        return LEAST
    if divisions <= 1 or size <= LEAST * divisions:
        return -(-size // LEAST) * LEAST
    floor = 1 << (size.bit_length() - 1)
    step = floor >> (divisions.bit_length() - 1)
    if floor == size:
        return size
    return floor << 1 if step == 0 else -(-size // step) * step


def _segment_size(size: int) -> int:
    """What cudaMalloc is asked for: get_allocation_size."""
    if size <= SMALL:
        return 2 * MIB
    return LARGE_BUFFER if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
