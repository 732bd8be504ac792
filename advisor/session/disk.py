"""Whether the disk that a run writes to has room for its checkpoints."""

import os
import shutil

from advisor.memory.disk import checkpoints
from advisor.run import Run
from advisor.util import gib

DEFAULT_OUTPUT = "./model-out"
"""axolotl/utils/schemas/model.py:142-148@0.19.0."""


def shortage(run: Run) -> str | None:
    """What is missing, in words; None where there is room, or nobody can know."""
    found = checkpoints(run)
    folder = run.config.get("output_dir") or DEFAULT_OUTPUT
    if found is None or not isinstance(folder, str):
        return None
    free = free_bytes(os.path.join(run.working_directory, folder))
    if free is None or free >= found.least:
        return None
    return f"`output_dir: {folder}` has {gib(free)} free; checkpoints need {gib(found.least)}: {found.words}"


def free_bytes(folder: str) -> int | None:
    """Free bytes where a folder is, or will be made."""
    path = os.path.abspath(folder)
    while not os.path.isdir(path):
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None
