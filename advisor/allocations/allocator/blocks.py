"""Blocks of the allocator, in the order of their addresses, and the pools that hold those that are free."""

from bisect import bisect_left, insort

MIB = 1 << 20
SMALL = MIB
"""Requests up to this size are served from a pool of their own."""


class Block:
    """A stretch of a segment: used or free, and in expandable segments mapped or not."""

    __slots__ = ("address", "after", "before", "free", "mapped", "pool", "segment", "size")

    def __init__(self, pool: "Pool", address: int, size: int, segment: int, *, mapped: bool = True) -> None:
        self.pool, self.address, self.size, self.segment, self.mapped = pool, address, size, segment, mapped
        self.free = True
        self.before: Block | None = None
        self.after: Block | None = None

    @property
    def whole(self) -> bool:
        """Whether it is a segment of its own."""
        return self.before is None and self.after is None


Entry = tuple[int, int, Block]


class Pool:
    """The free blocks of one size class and one stream, by size and then address, and the unmapped ones."""

    __slots__ = ("free", "small", "stream", "unmapped")

    def __init__(self, small: bool, stream: int) -> None:
        self.small, self.stream = small, stream
        self.free: list[Entry] = []
        self.unmapped: list[Block] = []

    @property
    def granule(self) -> int:
        """How much is mapped at once in an expandable segment."""
        return (2 if self.small else 20) * MIB

    def put(self, block: Block) -> None:
        """Adds a free block."""
        insort(self.free, (block.size, block.address, block))

    def take(self, block: Block) -> None:
        """Takes a free block out."""
        del self.free[bisect_left(self.free, (block.size, block.address))]


def link(left: Block, right: Block | None) -> None:
    """Makes two blocks neighbours."""
    left.after = right
    if right is not None:
        right.before = left


def cut(block: Block, size: int, *, mapped: bool = True) -> Block:
    """Shortens a block to ``size``; the rest, a neighbour of its own, is returned."""
    rest = Block(block.pool, block.address + size, block.size - size, block.segment, mapped=mapped)
    link(rest, block.after)
    link(block, rest)
    block.size = size
    return rest


def merge(block: Block) -> None:
    """Takes in the neighbours that are free, and mapped as it is: try_merge_blocks."""
    pool = block.pool
    for other in (block.before, block.after):
        if other is None or not other.free or other.mapped != block.mapped:
            continue
        if other.mapped:
            pool.take(other)
        else:
            pool.unmapped.remove(other)
        if other is block.before:
            block.address, block.before = other.address, other.before
            if other.before is not None:
                other.before.after = block
        else:
            link(block, other.after)
        block.size += other.size
