"""What torch will reserve: its allocator, replayed over the allocations of a step."""
