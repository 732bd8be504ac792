"""The folder of kept traces, apart from what reads them: every check asks for it, few find one."""

import os
from pathlib import Path


def folder() -> Path:
    """``axolotl-advisor/traces`` under ``XDG_CACHE_HOME`` (XDG Base Directory Specification 0.8), else ``~/.cache``."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "axolotl-advisor" / "traces"


def has_traces() -> bool:
    """Whether anything was ever kept, so that nothing is loaded where not."""
    try:
        return os.path.isdir(folder())
    except RuntimeError:  # no home
        return False
