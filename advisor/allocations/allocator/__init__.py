"""torch's caching allocator: blocks, segments, settings."""
