"""Where the DeepSpeed JSON that a YAML names lies, and whether it belongs to that YAML alone."""

import os
import re
from collections import Counter
from functools import lru_cache

from advisor.documents import Document
from advisor.documents.repository import lies_in, repository_of
from advisor.run.deepspeed import Section, is_shipped
from advisor.util import Buffers, read_start

NAMED = rb"(?m)^deepspeed:[ \t]*[\"']?([^\s\"'#]+)"
MOST_FILES = 5000


def deepspeed_path(config: Document, named: str, working_directory: str, buffers: Buffers) -> str | None:
    """Where the JSON lies: from the working directory, as axolotl looks, else next to the YAML."""
    for candidate in deepspeed_candidates(config, named, working_directory):
        if buffers.at(candidate) is not None or os.path.isfile(candidate):
            return os.path.normpath(candidate)
    return None


def deepspeed_candidates(config: Document, named: str, working_directory: str = ".") -> tuple[str, str]:
    """Where the JSON may lie; the first that is there counts."""
    return os.path.join(working_directory, named), os.path.join(os.path.dirname(config.file), named)


def is_own(config: Document, section: Section, left: int = 0) -> bool:
    """Whether the JSON belongs to this YAML alone: under its repository, not one of axolotl's, named by no other.

    ``left``: how many of those that name it on disk no longer do.
    """
    root, path = repository_of(config.file), section.file
    return lies_in(root, path) and not is_shipped(path, section) and namers(root)[os.path.basename(path)] - left <= 1


@lru_cache(maxsize=8)
def namers(root: str) -> Counter[str]:
    """How many YAMLs of a repository name each DeepSpeed file."""
    found: Counter[str] = Counter()
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        for name in files:
            if not name.endswith((".yaml", ".yml")) or seen > MOST_FILES:
                continue
            seen += 1
            try:
                content = read_start(os.path.join(folder, name), 1 << 20)
            except OSError:
                continue
            found.update(os.path.basename(match.decode(errors="replace")) for match in re.findall(NAMED, content))
    return found
