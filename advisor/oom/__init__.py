"""``advisor oom``: how a run died, from its log."""

from advisor.oom.death import Death, read_death

__all__ = ["Death", "read_death"]
