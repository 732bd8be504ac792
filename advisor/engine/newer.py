"""What the tables refuse, where a library is installed that is newer than they are: a warning, for it may take it."""

from collections.abc import Iterable

from advisor.engine.rule import Hit, Rule
from advisor.record import replace
from advisor.run import Run
from advisor.run.stack import Stack, release

KNOWN = Stack()
"""The versions that the tables are of, and that every proof was tested against."""


def hits_of(rule: Rule, run: Run) -> Iterable[Hit]:
    """What a lint rule finds in a run, at the level that is certain with the libraries that the run has."""
    found = rule.finds(run)
    if not (rule.of_names or rule.proof == "rejects") or not is_newer(run, library_of(rule)):
        return found
    return (replace(hit, level="warning") if (hit.level or rule.level) == "error" else hit for hit in found)


def library_of(rule: Rule) -> str:
    """Whose code refuses: the package that the source names first."""
    return "deepspeed" if rule.source.startswith("deepspeed") else "axolotl"


def is_newer(run: Run, library: str) -> bool:
    """Whether a run's library is newer than what is known of it."""
    theirs, known = release(getattr(run.stack, library)), release(getattr(KNOWN, library))
    return theirs > known
