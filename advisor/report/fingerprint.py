"""Stable fingerprints of findings, by which a code host recognises one in the next commit."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from advisor.engine.finding import Finding, Report
from advisor.report.snippet import lines_of


def identified(reports: Iterable[Report], root_variable: str) -> Iterator[tuple[Report, Finding, str]]:
    """Each finding with its fingerprint: file, rule, and the line pointed at; those that are alike are numbered."""
    seen: Counter[str] = Counter()
    for report in reports:
        for finding in findings_in(report):
            path = repository_path(finding.place.file, root_variable)
            identity = f"{path}\0{finding.rule}\0{code(finding, report)}"
            seen[identity] += 1
            yield (
                report,
                finding,
                hashlib.sha256(f"{identity}\0{seen[identity]}".encode(errors="surrogateescape")).hexdigest(),
            )


def findings_in(report: Report) -> tuple[Finding, ...]:
    """All findings, those included that were there before: a code host compares by itself."""
    return (*report.findings, *(report.against.known if report.against else ()))


def code(finding: Finding, report: Report) -> str:
    """The line pointed at, which stays the same when lines are added above it or numbers change."""
    rows = lines_of(report.texts.get(finding.place.file, ""))
    return rows[finding.place.line - 1].strip() if 0 < finding.place.line <= len(rows) else ""


def repository_path(file: str, environment_key: str = "") -> str:
    """``file`` relative to the checkout; a path outside of it is left as it was given.

    The checkout is the folder that the CI names in an environment variable, else the working directory.
    """
    root = os.environ.get(environment_key) or os.getcwd()
    try:
        relative = os.path.relpath(file, root)
    except ValueError:  # another drive on Windows
        relative = file
    return (file if relative.startswith("..") else relative).replace(os.sep, "/")


def uri(file: str, environment_key: str = "") -> str:
    """The same as a URI reference; bytes of a name that are not UTF-8 are kept."""
    return quote(os.fsencode(repository_path(file, environment_key)))
