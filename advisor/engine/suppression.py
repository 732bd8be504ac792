"""Comments that keep findings quiet, and a warning for those that keep nothing quiet."""

import os
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from advisor.documents import Directive, Document
from advisor.engine.finding import Finding, Place, Report
from advisor.record import replace
from advisor.run import Run

Spot = tuple[str, int]
"""A rule and a line of the YAML; line 0 for all of the file."""


def suppressed(run: Run, findings: Sequence[Finding], consulted: Callable[[str], bool]) -> list[Finding]:
    """Findings that no comment keeps quiet, and a warning for each comment that keeps nothing quiet.

    Nothing is said of a comment for a rule that was not ``consulted``: whether it would speak is not known.
    """
    kept = [finding for finding in findings if not is_ignored(run, finding)]
    if not consulted("unused-ignore"):
        return kept
    malformed = [_malformed_finding(run, d) for d in run.config.directives if d.name == "malformed"]
    spots = _spots_of(run.config, findings)
    idle = [(directive, _idle_rules(run.config, directive, spots, consulted)) for directive in ignores(run.config)]
    return [*kept, *(_unused_finding(run, directive, rules) for directive, rules in idle if rules), *malformed]


def is_ignored(run: Run, finding: Finding) -> bool:
    """Whether a comment keeps a finding quiet."""
    quiet = quiet_in(run.config)
    here = finding.place.file == run.config.file and (finding.rule, finding.place.line) in quiet
    return here or (finding.rule, 0) in quiet


@lru_cache(maxsize=4)
def quiet_in(config: Document) -> frozenset[Spot]:
    """What the comments of a YAML keep quiet: rules and lines."""
    return frozenset(
        _spot_of(config, directive, rule) for directive in ignores(config) for rule in _rules_in(directive)
    )


def ignores(config: Document) -> list[Directive]:
    """The comments that keep something quiet."""
    return [directive for directive in config.directives if directive.name in {"ignore", "file-ignore"}]


def _rules_in(directive: Directive) -> list[str]:
    """The ids that a comment names."""
    return [part.strip() for part in directive.argument.split(",")]


def _spot_of(config: Document, directive: Directive, rule: str) -> Spot:
    """What a comment on a rule speaks of: the line that it means, or all of the file as line 0."""
    return rule, 0 if directive.name == "file-ignore" else _line_meant(config, directive)


def _spots_of(config: Document, findings: Sequence[Finding]) -> set[Spot]:
    """The spots that a comment may name to keep one of the findings quiet."""
    here = {(finding.rule, finding.place.line) for finding in findings if finding.place.file == config.file}
    return here | {(finding.rule, 0) for finding in findings}


def _line_meant(config: Document, directive: Directive) -> int:
    """The comment's own line, or if it stands alone the next line that holds more than a comment; -1 without one."""
    if not directive.own_line:
        return directive.line
    lines = _lines_with_code(config)
    following = bisect_right(lines, directive.line)
    return lines[following] if following < len(lines) else -1


@lru_cache(maxsize=4)
def _lines_with_code(config: Document) -> list[int]:
    """The lines that hold more than a comment, in order."""
    starts = [*config.source.text.line_starts, len(config.text)]
    rows = (config.text[start:end].strip() for start, end in pairwise(starts))
    return [number for number, row in enumerate(rows, 1) if row and not row.startswith("#")]


def _idle_rules(
    config: Document, directive: Directive, spots: Container[Spot], consulted: Callable[[str], bool]
) -> list[str]:
    """The rules of a comment that were asked and found nothing there."""
    asked = [rule for rule in _rules_in(directive) if consulted(rule)]
    return [rule for rule in asked if _spot_of(config, directive, rule) not in spots]


def _unused_finding(run: Run, directive: Directive, rules: Sequence[str]) -> Finding:
    """An ignore that matches nothing, or a part of one."""
    written = f"`# advisor: {directive.name}[{directive.argument}]`"
    if len(rules) == len(_rules_in(directive)):
        return _directive_finding(run, directive, f"{written} matches no finding; remove it")
    idle = ", ".join(f"`{rule}`" for rule in rules)
    return _directive_finding(run, directive, f"{idle} in {written} matches no finding; remove it")


def _malformed_finding(run: Run, directive: Directive) -> Finding:
    """A comment to the advisor that it does not understand."""
    forms = "`gpus=...`, `model=...`, `ignore[rule] reason` or `file-ignore[rule] reason`"
    return _directive_finding(run, directive, f"`# advisor: {directive.argument}` is not understood; write {forms}")


def _directive_finding(run: Run, directive: Directive, message: str) -> Finding:
    """A warning at a comment."""
    place = Place(run.config.file, directive.line, 1, directive.line, 2)
    return Finding("unused-ignore", "warning", message, place, title="Unused ignore")


Key = tuple[str, str, int, int, str]


def said_once(reports: Iterable[Report]) -> Iterator[Report]:
    """The reports, each finding in a JSON that several YAMLs name in the first of theirs alone."""
    seen: set[Key] = set()
    return (_without_seen(report, seen) for report in reports)


def _without_seen(report: Report, seen: set[Key]) -> Report:
    """The report without what has been said of other files; what it says goes to ``seen``."""
    keys = [_key_of(finding) if finding.place.file != report.file else None for finding in report.findings]
    kept = tuple(f for f, key in zip(report.findings, keys, strict=True) if key is None or key not in seen)
    seen.update(key for key in keys if key is not None)
    return report if len(kept) == len(report.findings) else replace(report, findings=kept)


def _key_of(finding: Finding) -> Key:
    """What makes two findings the same."""
    place = finding.place
    return finding.rule, os.path.realpath(place.file), place.line, place.column, finding.message
