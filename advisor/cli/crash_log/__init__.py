"""``advisor oom``: how a run died, from its log."""

from advisor.cli.crash_log.parse import Death, read_death

__all__ = ["Death", "read_death"]
