"""What a finding is, whatever its line and its numbers, so that a code host knows it again in the next commit."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from advisor.engine.finding import Finding, Report
from advisor.report.paths import repository_path
from advisor.report.snippet import lines_of


def identified(reports: Iterable[Report], root_variable: str) -> Iterator[tuple[Report, Finding, str]]:
    """Each finding with its fingerprint: file, rule, and the line pointed at; those that are alike are numbered."""
    seen: Counter[str] = Counter()
    for report in reports:
        for finding in report.findings:
            path = repository_path(finding.place.file, root_variable)
            identity = f"{path}\0{finding.rule}\0{code(finding, report)}"
            seen[identity] += 1
            yield (
                report,
                finding,
                hashlib.sha256(f"{identity}\0{seen[identity]}".encode(errors="surrogateescape")).hexdigest(),
            )


def code(finding: Finding, report: Report) -> str:
    """The line pointed at, which stays the same when lines are added above it or numbers change."""
    rows = lines_of(report.texts.get(finding.place.file, ""))
    return rows[finding.place.line - 1].strip() if 0 < finding.place.line <= len(rows) else ""
