"""The options of ``check``, typed, and the configs that paths name."""

import sys

from advisor.documents import Document
from advisor.documents.discovery import from_stdin, gathered, no_config
from advisor.errors import InputError
from advisor.record import record
from advisor.report.style import Detail
from advisor.schemas.sweeps import as_config
from advisor.session import RunOptions


@record(kw_only=True)
class CheckOptions(RunOptions):
    """What ``advisor check`` was asked."""

    fix: bool = False
    unsafe_fixes: bool = False
    faster: bool = False
    diff: bool = False
    patch: bool = False
    output_dir: str | None = None
    output: str | None = None
    changed_since: str | None = None
    against: str | None = None
    exit_zero: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def detail(self) -> Detail:
        """How much the format ``full`` says."""
        return "quiet" if self.quiet else "verbose" if self.verbose else "normal"

    def validate_pairs(self) -> None:
        """Options that contradict each other are an ``InputError``."""
        if self.quiet and self.verbose:
            raise InputError("--quiet and --verbose contradict each other", remedy="remove one")
        if self.unsafe_fixes and not (self.fix or self.diff):
            raise InputError("--unsafe-fixes does nothing alone", remedy="add --fix or --diff")
        if self.faster and not (self.fix or self.diff):
            raise InputError("--faster does nothing alone", remedy="add --fix or --diff")
        if self.output_dir and not self.fix:
            raise InputError("--output-dir does nothing alone", remedy="add --fix")


def config_at(path: str) -> Document:
    """The one axolotl config that a path names; ``-`` is standard input. ``InputError`` if there is none."""
    if path == "-":
        return from_stdin(sys.stdin.buffer.read())
    found = next(filter(None, (as_config(found, named=True) for found in gathered([path]))), None)
    if isinstance(found, InputError):
        raise found
    if found is None or found.syntax != "yaml":
        raise no_config(path)
    return found
