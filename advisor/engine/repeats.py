"""What several runs of a call have in common is said once."""

import os
from collections.abc import Sequence
from dataclasses import replace

from advisor.engine.finding import Finding, Report

Key = tuple[str, str, int, int, str]


def said_once(reports: Sequence[Report]) -> list[Report]:
    """The reports, each finding in a JSON that several YAMLs name in the first of theirs alone."""
    seen: set[Key] = set()
    return [without_seen(report, seen) for report in reports]


def without_seen(report: Report, seen: set[Key]) -> Report:
    """The report without what has been said of other files; what it says goes to ``seen``."""
    keys = [key_of(finding) if finding.place.file != report.file else None for finding in report.findings]
    kept = tuple(f for f, key in zip(report.findings, keys, strict=True) if key is None or key not in seen)
    seen.update(key for key in keys if key is not None)
    return report if len(kept) == len(report.findings) else replace(report, findings=kept)


def key_of(finding: Finding) -> Key:
    """What makes two findings the same."""
    place = finding.place
    return finding.rule, os.path.realpath(place.file), place.line, place.column, finding.message
