"""Findings on the screen: a line each with its place, those of one rule and remedy as one, few notes."""

from collections.abc import Sequence

from advisor.engine.finding import LEVELS, Finding, Report
from advisor.record import record
from advisor.report.style import Style
from advisor.report.wording import VERDICT_RULES, counted, edit_counts, severity
from advisor.util import path_shown, printable

MOST_NOTES = 3
LEVEL_WORDS = {"error": "error", "warning": "warn", "note": "note"}


@record(eq=False)
class Said:
    """Findings of one rule and one remedy: the first, and the lines of the others."""

    first: Finding
    lines: tuple[int, ...] = ()


def spoken(report: Report) -> list[Finding]:
    """What is neither a step nor the verdict, most severe first."""
    plain = [f for f in report.findings if f.step is None and f.sequence is None and f.rule not in VERDICT_RULES]
    return sorted(plain, key=severity)


def merged(findings: Sequence[Finding]) -> list[Said]:
    """Those of one rule and remedy as one."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in findings:
        remedy = finding.message.rpartition("; ")[2] if "; " in finding.message else ""
        key = finding.level, finding.rule, finding.place.file, remedy if finding.level != "note" else ""
        groups.setdefault(key, []).append(finding)
    alike = (_as_one(group) for group in groups.values())
    return [said for group in alike for said in group]


def _as_one(group: Sequence[Finding]) -> list[Said]:
    """Findings that share a remedy as one; errors and warnings without one each stay."""
    first, *rest = group
    if first.level != "note" and rest and "; " not in first.message and len({f.message for f in group}) > 1:
        return [Said(finding) for finding in group]
    return [Said(first, tuple(sorted({finding.place.line for finding in rest} - {0, first.place.line})))]


def finding_lines(report: Report, style: Style) -> list[str]:
    """Every error and warning, the first few notes, and how many more there are."""
    found = merged(spoken(report))
    loud = [said for said in found if said.first.level != "note"]
    notes = [said for said in found if said.first.level == "note"]
    width = max((len(str(said.first.place.line)) for said in found), default=1)
    lines = [line for said in (*loud, *notes[:MOST_NOTES]) for line in _lines_of(said, report, width, style)]
    if len(notes) > MOST_NOTES:
        lines.append(f"{counted(len(notes) - MOST_NOTES, 'more note')} (-v)")
    return lines


def _lines_of(said: Said, report: Report, width: int, style: Style) -> list[str]:
    """``warn   9  `key` does nothing; remove it [rule]``; a note by its title, in a line."""
    finding, word = said.first, LEVEL_WORDS[said.first.level]
    place = str(finding.place.line) if finding.place.line else "-"
    lead = f"{word:<5} {place:>{width}}  "
    elsewhere = f"{path_shown(finding.place.file)}: " if finding.place.file != report.file else ""
    text = finding.title if finding.level == "note" and finding.title else finding.message
    more = f" (also line{'s' if len(said.lines) > 1 else ''} {', '.join(map(str, said.lines))})" if said.lines else ""
    return style.prose(f"{elsewhere}{printable(text)}{more} [{finding.rule}]", lead, finding.level, indent=len(lead))


def totals_of(report: Report, verdict: str, written: str) -> str:
    """``Does not fit. 1 warning, 2 notes. Nothing was written.``"""
    found = spoken(report)
    levels = [counted(n, level) for level in LEVELS if (n := sum(f.level == level for f in found))]
    is_told = report.answer is not None and report.answer.recommended is not None
    said = (", ".join(levels), "" if is_told else edit_counts(found), _fixed_words(report))
    return " ".join(part for part in (f"{verdict}.", *(f"{part}." for part in said if part), written) if part)


def _fixed_words(report: Report) -> str:
    """``2 fixed``; empty where nothing was."""
    return f"{report.fixed} fixed" if report.fixed else ""
