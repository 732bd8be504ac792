"""The folder of kept traces, apart from what reads them: every check asks for it, few find one."""

import os
from pathlib import Path

from advisor.util import cache_folder


def folder() -> Path:
    """``axolotl-advisor/traces`` in the cache folder."""
    return cache_folder() / "axolotl-advisor" / "traces"


def has_traces() -> bool:
    """Whether anything was ever kept, so that nothing is loaded where not."""
    try:
        return os.path.isdir(folder())
    except RuntimeError:  # no home
        return False
