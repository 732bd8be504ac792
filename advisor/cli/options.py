"""The options of ``check``, typed, and the configs that paths name."""

import sys
from collections.abc import Sequence

from advisor.documents import Document
from advisor.documents.discovery import from_stdin, gathered
from advisor.errors import InputError
from advisor.record import record
from advisor.session import RunOptions


@record(kw_only=True)
class CheckOptions(RunOptions):
    """What ``advisor check`` was asked."""

    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    patch: bool = False
    output_dir: str | None = None
    output: str | None = None
    changed_since: str | None = None
    exit_zero: bool = False

    def validate_pairs(self) -> None:
        """Options that contradict each other are an ``InputError``."""
        if self.unsafe_fixes and not (self.fix or self.diff):
            raise InputError("--unsafe-fixes does nothing alone", remedy="add --fix or --diff")
        if self.output_dir and not self.fix:
            raise InputError("--output-dir does nothing alone", remedy="add --fix")


def documents_of(paths: Sequence[str]) -> list[Document | InputError]:
    """The axolotl configs in order; ``-`` is standard input."""
    if "-" in paths:
        return [from_stdin(sys.stdin.buffer.read())]
    return [found for found in gathered(paths) if isinstance(found, InputError) or found.syntax == "yaml"]


def config_at(path: str) -> Document:
    """The one axolotl config that a path names. ``InputError`` if it is none, or cannot be read."""
    found = documents_of([path])
    if not found:
        raise InputError("is not an axolotl config: it has no `base_model`", path, remedy="name an axolotl YAML")
    if isinstance(found[0], InputError):
        raise found[0]
    return found[0]
