"""Expandable segments: address space without an end, of which granules are mapped as they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.allocator.blocks import Block, Pool, cut, link, merge

if TYPE_CHECKING:
    from advisor.allocations.allocator.allocator import Allocator

SPACE = 1 << 42
"""Torch takes an eighth more than the card has; here no card is larger than one stretch."""


def grow(allocator: Allocator, pool: Pool, size: int) -> Block | None:
    """A free block of at least ``size`` bytes, mapped as far as needed: try_allocate_expandable_block."""
    block = _with_space(pool, size)
    if block is None:
        address = allocator.upwards(SPACE)
        block = Block(pool, address, SPACE, address, mapped=False)
        pool.unmapped.append(block)
    if not block.mapped and not mapped(allocator, block, min(block.size, size)):
        return None
    while block.size < size:
        behind = block.after
        assert behind is not None, "with_space counted them"
        if not mapped(allocator, behind, min(behind.size, size - block.size)):
            return None
        block = behind
    pool.take(block)
    return block


def _with_space(pool: Pool, size: int) -> Block | None:
    """The lowest unmapped block, or the free one before it, from where enough is free: find_expandable_block."""
    for unmapped in sorted(pool.unmapped, key=lambda block: block.address):
        before = unmapped.before
        start = before if before is not None and before.free else unmapped
        found, block = 0, start
        while block is not None and block.free and found < size:
            found, block = found + block.size, block.after
        if found >= size:
            return start
    return None


def mapped(allocator: Allocator, block: Block, size: int) -> bool:
    """Maps the granules of the first ``size`` bytes of a block, and merges it: map_block. False at the limit."""
    pool = block.pool
    size = -(-size // pool.granule) * pool.granule
    if allocator.limit is not None and allocator.reserved + size > allocator.limit:
        return False
    pool.unmapped.remove(block)
    block.mapped = True
    if size < block.size:
        pool.unmapped.append(cut(block, size, mapped=False))
    merge(block)
    pool.put(block)
    allocator.reserved += size
    return True


def unmap(block: Block) -> int:
    """Unmaps the granules that lie wholly in a free block, and says how many bytes: unmap_block."""
    pool, granule = block.pool, block.pool.granule
    start = block.segment + -(-(block.address - block.segment) // granule) * granule
    end = block.segment + (block.address + block.size - block.segment) // granule * granule
    if end <= start:
        return 0
    pool.take(block)
    if start > block.address:
        front = Block(pool, block.address, start - block.address, block.segment)
        if block.before is not None:
            link(block.before, front)
        link(front, block)
        pool.put(front)
        block.address, block.size = start, block.size - front.size
    if end < block.address + block.size:
        pool.put(cut(block, end - block.address))
    block.mapped = False
    merge(block)
    pool.unmapped.append(block)
    return end - start
