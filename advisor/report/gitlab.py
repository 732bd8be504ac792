"""GitLab's code quality report (docs.gitlab.com/ci/testing/code_quality, "Code quality report format")."""

from collections.abc import Mapping, Sequence
from typing import Any

from advisor.engine.finding import Finding, Report
from advisor.engine.rule import Level
from advisor.report.as_json import dumped
from advisor.report.fingerprint import identified, repository_path
from advisor.report.style import Style

ROOT = "CI_PROJECT_DIR"
SEVERITIES: Mapping[Level, str] = {"error": "critical", "warning": "minor", "note": "info"}


def render(reports: Sequence[Report], _style: Style) -> str:
    """A JSON array with one issue a finding."""
    issues = [issue(finding, mark) for _, finding, mark in identified(reports, ROOT)]
    return dumped(issues)


def issue(finding: Finding, fingerprint: str) -> dict[str, Any]:
    """One finding."""
    lines: dict[str, int] = {"begin": max(1, finding.place.line)}
    if finding.place.end_line > lines["begin"]:
        lines["end"] = finding.place.end_line
    return {
        "description": finding.message,
        "check_name": finding.rule,
        "fingerprint": fingerprint,
        "severity": SEVERITIES[finding.level],
        "location": {"path": repository_path(finding.place.file, ROOT), "lines": lines},
    }
