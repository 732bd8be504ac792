"""Comments that keep findings quiet, and a warning for those that keep nothing quiet."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from advisor.documents import Directive
from advisor.engine.finding import Finding, Place, Report
from advisor.run import Run


def suppressed(run: Run, findings: Sequence[Finding], consulted: Callable[[str], bool]) -> list[Finding]:
    """Findings that no comment keeps quiet, and a warning for each comment that keeps nothing quiet.

    Nothing is said of a comment for a rule that was not ``consulted``: whether it would speak is not known.
    """
    kept = [finding for finding in findings if not is_ignored(run, finding)]
    if not consulted("unused-ignore"):
        return kept
    malformed = [malformed_finding(run, d) for d in run.config.directives if d.name == "malformed"]
    idle = [(directive, idle_rules(run, directive, findings, consulted)) for directive in ignores(run)]
    return [*kept, *(unused_finding(run, directive, rules) for directive, rules in idle if rules), *malformed]


def is_ignored(run: Run, finding: Finding) -> bool:
    """Whether a comment keeps a finding quiet."""
    return any(silences(run, directive, rule, finding) for directive in ignores(run) for rule in rules_in(directive))


def ignores(run: Run) -> list[Directive]:
    """The comments that keep something quiet."""
    return [directive for directive in run.config.directives if directive.name in {"ignore", "file-ignore"}]


def rules_in(directive: Directive) -> list[str]:
    """The ids that a comment names."""
    return [part.strip() for part in directive.argument.split(",")]


def silences(run: Run, directive: Directive, rule: str, finding: Finding) -> bool:
    """Whether a comment on a rule speaks of this finding: by its id, and unless it is for the file, by its line."""
    if finding.rule != rule:
        return False
    is_here = finding.place.file == run.config.file and finding.place.line == line_meant(run, directive)
    return is_here or directive.name == "file-ignore"


def line_meant(run: Run, directive: Directive) -> int:
    """The comment's own line, or if it stands alone the next line that holds more than a comment."""
    if not directive.own_line:
        return directive.line
    following = enumerate(run.config.text.splitlines()[directive.line :], directive.line + 1)
    return next((number for number, line in following if line.strip() and not line.strip().startswith("#")), 0)


def idle_rules(
    run: Run, directive: Directive, findings: Sequence[Finding], consulted: Callable[[str], bool]
) -> list[str]:
    """The rules of a comment that were asked and found nothing there."""
    asked = [rule for rule in rules_in(directive) if consulted(rule)]
    return [rule for rule in asked if not any(silences(run, directive, rule, finding) for finding in findings)]


def unused_finding(run: Run, directive: Directive, rules: Sequence[str]) -> Finding:
    """An ignore that matches nothing, or a part of one."""
    written = f"`# advisor: {directive.name}[{directive.argument}]`"
    if len(rules) == len(rules_in(directive)):
        return directive_finding(run, directive, f"{written} matches no finding; remove it")
    idle = ", ".join(f"`{rule}`" for rule in rules)
    return directive_finding(run, directive, f"{idle} in {written} matches no finding; remove it")


def malformed_finding(run: Run, directive: Directive) -> Finding:
    """A comment to the advisor that it does not understand."""
    forms = "`gpus=...`, `model=...`, `ignore[rule] reason` or `file-ignore[rule] reason`"
    return directive_finding(run, directive, f"`# advisor: {directive.argument}` is not understood; write {forms}")


def directive_finding(run: Run, directive: Directive, message: str) -> Finding:
    """A warning at a comment."""
    place = Place(run.config.file, directive.line, 1, directive.line, 2)
    return Finding("unused-ignore", "warning", message, place, title="Unused ignore")


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
