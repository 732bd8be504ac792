"""What ``--fix`` did: before and after, each edit with its reason and cost, what was created, how to undo it."""

from collections.abc import Iterator, Sequence

from advisor.engine.finding import Finding, Report
from advisor.report.style import Style
from advisor.report.wording import arrow, counted, number
from advisor.util import path_shown, seconds


def fixed_lines(report: Report, style: Style) -> list[str]:
    """All of it for one file."""
    lines = style.prose(_summary(report.applied), f"Fixed {path_shown(report.file)}: ", "help", indent=2)
    for finding in report.applied:
        lines += style.prose(_words_of(finding), f"  {finding.rule}: ", indent=4)
    if report.created:
        lines += style.prose(", ".join(map(path_shown, report.created)), "  created: ", indent=4)
    if report.undo:
        lines += style.prose(report.undo, "  to undo: ", indent=4)
    return lines


def fixed_line(report: Report, style: Style) -> list[str]:
    """``fixed run.yaml  2 edits, same training: 44.8 -> 21.2 GiB``."""
    fixes = [finding.fix for finding in report.applied if finding.fix]
    sized = [fix.needed for fix in fixes if fix.needed]
    training = "same training" if all(fix.safe for fix in fixes) else "changes training"
    ends = f": {arrow(number(sized[0][0]), number(sized[-1][1]))} GiB" if sized else ""
    file = path_shown(report.file).removeprefix("./")
    edits = counted(len(report.applied) or report.fixed, "edit")
    return style.prose(f"{edits}, {training}{ends}", f"fixed {file}  ", indent=6)


def _summary(applied: Sequence[Finding]) -> str:
    """``4 edits, 349.5 -> 72.9 GiB on each GPU``."""
    sized = [finding.fix.needed for finding in applied if finding.fix and finding.fix.needed]
    edits = counted(len(applied), "edit")
    return f"{edits}, {arrow(number(sized[0][0]), number(sized[-1][1]))} GiB on each GPU" if sized else edits


def _words_of(finding: Finding) -> str:
    """What an edit is, what it changes, why, and what it costs."""
    return "; ".join(part.rstrip(".") for part in _parts_of(finding) if part)


def _parts_of(finding: Finding) -> Iterator[str]:
    fix = finding.fix
    yield finding.label or finding.title or finding.message
    if fix is not None and fix.needed:
        yield f"{arrow(*map(number, fix.needed))} GiB"
    if fix is not None and fix.seconds and fix.seconds[0] != fix.seconds[1]:
        yield f"{arrow(*map(seconds, fix.seconds))} s a step"
    yield finding.because
    yield finding.price
