"""One text from what two environments say: ``python -m tests.upstream.report PINNED NEWEST``."""

import json
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.upstream.cited import Citation, Moved, Packages, citations, followed
from tests.upstream.observe import NOT_WRITTEN, RESULTS, TABLES, VERSIONS
from tests.upstream.tables import Difference, differences, rows_of

MOST = 40
"""Lines of a list; the rest is counted."""


@dataclass(frozen=True)
class Observed:
    """One environment's folder."""

    folder: Path

    @property
    def packages(self) -> Packages:
        """What is installed there."""
        return Packages(self._json(VERSIONS)["sites"])

    @property
    def versions(self) -> dict[str, str]:
        """By package."""
        return self._json(VERSIONS)["versions"]

    @property
    def not_written(self) -> dict[str, str]:
        """What could not be written, and why."""
        return self._json(NOT_WRITTEN)

    def _json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def outcomes(self) -> dict[str, str]:
        """How each oracle ended: passed, failed, skipped."""
        file = self.folder / RESULTS
        cases = ET.parse(file).getroot().iter("testcase") if file.exists() else ()
        return {f"{case.get('classname')}::{case.get('name')}": _outcome(case) for case in cases}


def _outcome(case: ET.Element) -> str:
    ends = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    return next((word for name, word in ends.items() if case.find(name) is not None), "passed")


def report(pinned: Observed, newest: Observed, all_citations: Iterable[Citation]) -> str:
    """Markdown: versions, keys, oracles, citations."""
    parts = (versions(pinned, newest), keys(pinned, newest), oracles(pinned, newest))
    found = [each for one in all_citations if (each := followed(one, pinned.packages, newest.packages))]
    return "\n".join(line for part in (*parts, cited(found)) for line in (*part, "")).rstrip() + "\n"


def versions(pinned: Observed, newest: Observed) -> Iterator[str]:
    """What was compared."""
    yield "# Upstream: what has changed since the pinned stack"
    yield ""
    yield "| package | pinned | newest |"
    yield "| --- | --- | --- |"
    for name, new in newest.versions.items():
        yield f"| {name} | {pinned.versions.get(name, '-')} | {new} |"


def keys(pinned: Observed, newest: Observed) -> Iterator[str]:
    """New and gone keys of each table."""
    yield "## Keys and defaults"
    for what, error in newest.not_written.items():
        yield f"- **{what} cannot be written**: {error}"
    for name in TABLES:
        files = (pinned.folder / name, newest.folder / name)
        if all(file.exists() for file in files):
            yield from listed(name, [shown(each) for each in differences(*map(rows_of, files))], "no difference")


def shown(found: Difference) -> str:
    """A line of the list."""
    where = f"`{found.level}.{found.key}`"
    if found.before is None:
        return f"new: {where} {_compact(found.after)}"
    if found.after is None:
        return f"gone: {where}"
    return f"changed: {where} {_compact(found.before)} -> {_compact(found.after)}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def oracles(pinned: Observed, newest: Observed) -> Iterator[str]:
    """Those that end otherwise."""
    yield "## Oracles"
    before, after = pinned.outcomes(), newest.outcomes()
    yield f"- pinned: {counts(before.values())}; newest: {counts(after.values())}"
    moved = [
        f"{before[name]} -> {after[name]}: `{name}`" for name in before if after.get(name, "") not in ("", before[name])
    ]
    yield from listed("moved", moved, "none moved")
    only = [f"`{name}` {end}" for name, end in after.items() if name not in before and end == "failed"]
    yield from listed("new and failing", only, "none")


def counts(outcomes: Iterable[str]) -> str:
    """``12 passed, 1 failed``."""
    return ", ".join(f"{count} {word}" for word, count in sorted(Counter(outcomes).items())) or "none ran"


def cited(found: Sequence[Moved]) -> Iterator[str]:
    """Lines whose text is no longer there, and where the others went."""
    yield "## Cited lines"
    fates = Counter(each.fate for each in found)
    yield f"- {len(found)} followed: {', '.join(f'{count} {fate}' for fate, count in fates.most_common())}"
    lost = [
        f"{each.fate}: `{each.citation}` in {each.citation.place}" for each in found if each.fate in ("changed", "gone")
    ]
    yield from listed("to read again", lost, "none")
    moved = [
        f"`{each.citation}` begins at line {each.line} now ({each.citation.place})"
        for each in found
        if each.fate == "moved"
    ]
    yield from listed("moved", moved, "none")


def listed(title: str, lines: Sequence[str], none: str) -> Iterator[str]:
    """A list of at most ``MOST`` lines under its title."""
    if not lines:
        yield f"- {title}: {none}"
        return
    yield f"- {title}: {len(lines)}"
    yield from (f"  - {line}" for line in lines[:MOST])
    if len(lines) > MOST:
        yield f"  - and {len(lines) - MOST} more"


if __name__ == "__main__":
    print(report(*(Observed(Path(folder)) for folder in sys.argv[1:3]), citations()), end="")
