"""What ``--fix`` did: before and after, each edit with its reason and cost, what was created, how to undo it."""

from collections.abc import Sequence

from advisor.engine.answer_steps import steps_of
from advisor.engine.finding import Finding, Report
from advisor.report.answer_text import numbered
from advisor.report.style import Style
from advisor.report.wording import arrow, counted, number
from advisor.util import path_shown


def fixed_lines(report: Report, style: Style) -> list[str]:
    """All of it for one file; a quiet style leaves out the edits one by one."""
    lines = style.prose(_summary(report.applied), f"Fixed {path_shown(report.file)}: ", "help", indent=2)
    if style.detail != "quiet":
        lines += numbered(steps_of(report.applied), style)
    if report.created:
        lines += style.prose(", ".join(map(path_shown, report.created)), "created: ", indent=2)
    if report.undo:
        lines += style.prose(report.undo, "to undo, if it was committed: ", indent=2)
    for command in dict.fromkeys(each for finding in report.applied for each in finding.requires):
        lines += style.prose(command, "install first: ", "warn", indent=2)
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
