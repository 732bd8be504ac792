"""GitLab's code quality report (docs.gitlab.com/ci/testing/code_quality, "Code quality report format")."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.finding import Finding, Report
from advisor.report.paths import repository_path
from advisor.report.snippet import lines_of
from advisor.report.style import Style
from advisor.rule import Level

SEVERITIES: Mapping[Level, str] = {"error": "critical", "warning": "minor", "note": "info"}


def render(reports: Sequence[Report], _style: Style) -> str:
    """A JSON array with one issue a finding."""
    seen: Counter[str] = Counter()
    issues = [issue(finding, report, seen) for report in reports for finding in report.findings]
    return json.dumps(issues, indent=2, ensure_ascii=False)


def issue(finding: Finding, report: Report, seen: Counter[str]) -> dict[str, Any]:
    """One finding."""
    path = repository_path(finding.place.file, "CI_PROJECT_DIR")
    lines: dict[str, int] = {"begin": max(1, finding.place.line)}
    if finding.place.end_line > lines["begin"]:
        lines["end"] = finding.place.end_line
    return {
        "description": finding.message,
        "check_name": finding.rule,
        "fingerprint": fingerprint(f"{path}\0{finding.rule}\0{code(finding, report)}", seen),
        "severity": SEVERITIES[finding.level],
        "location": {"path": path, "lines": lines},
    }


def code(finding: Finding, report: Report) -> str:
    """The line pointed at, which stays the same when lines are added above it or numbers change."""
    rows = lines_of(report.texts.get(finding.place.file, ""))
    return rows[finding.place.line - 1].strip() if 0 < finding.place.line <= len(rows) else ""


def fingerprint(identity: str, seen: Counter[str]) -> str:
    """A hash of what a finding is, with its number among those that are alike."""
    seen[identity] += 1
    return hashlib.sha256(f"{identity}\0{seen[identity]}".encode()).hexdigest()
