"""Which files and folders a walk leaves out: globs as in a .gitignore."""

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import PurePath

from advisor.record import record


@record
class Glob:
    """A pattern, and the folder that it is written from.

    Without a slash it matches a name at any depth, with one a path from that folder on; ``**`` stands for any folders.
    """

    root: str
    pattern: str

    def matches(self, path: str) -> bool:
        """Whether it matches this very path, its folders left out."""
        parts = [part for part in self.pattern.split("/") if part]
        if "/" not in self.pattern.rstrip("/"):
            return bool(parts) and fnmatchcase(os.path.basename(path), parts[0])
        below = os.path.relpath(os.path.realpath(path), os.path.realpath(self.root))
        return parts_match(parts, PurePath(below).parts)


@record
class Excluded:
    """All that is left out of a walk."""

    globs: tuple[Glob, ...] = ()

    def has(self, path: str) -> bool:
        """Whether this path itself is left out."""
        return any(glob.matches(path) for glob in self.globs)

    def has_above(self, path: str) -> bool:
        """Whether this path is left out, or a folder that it lies in."""
        if not self.globs:
            return False
        path = os.path.normpath(path)
        return any(self.has(above) for above in (path, *folders_of(path)))


def folders_of(path: str) -> Iterable[str]:
    """The folders that a path names, innermost first."""
    while (folder := os.path.dirname(path)) and folder != path:
        yield folder
        path = folder


def parts_match(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the parts of a pattern match those of a path, one by one: a part is looked at once for each of a path."""
    reached: list[bool] = [True] + [False] * len(path)
    for part in pattern:
        if part == "**":
            reached = list(accumulate(reached, lambda above, here: above or here))
        else:
            steps = zip(reached, path, strict=False)
            reached = [False, *(before and fnmatchcase(name, part) for before, name in steps)]
    return reached[-1]


def excluded(options: Sequence[str], settings: Sequence[str], file: str | None) -> Excluded:
    """The patterns of an option, from the working directory on, and of the settings, from their folder on."""
    folder = os.path.dirname(os.path.abspath(file)) if file else "."
    return Excluded((*(Glob(".", each) for each in options), *(Glob(folder, each) for each in settings)))
