"""One line a finding, as editors and grep read it."""

from collections.abc import Sequence

from advisor.engine.finding import Finding, Report
from advisor.report.style import Style
from advisor.report.wording import change, compared, findings_of, is_offer, position, second, status, totals
from advisor.util import path_shown, printable


def render(reports: Sequence[Report], style: Style) -> str:
    """``file:line:column: level[rule] message [*]``, most severe first, then the counts."""
    lines = [line(finding, style) for _, finding in findings_of(reports)]
    if not lines and len(reports) == 1 and not reports[0].fixed and reports[0].against is None:
        return "\n".join([status(reports[0]), *seconds(reports)])
    changes = [f"{path_shown(report.file)}: {compared(report)}" for report in reports if report.against]
    return "\n".join([*lines, *seconds(reports), *changes, totals(reports)])


def seconds(reports: Sequence[Report]) -> list[str]:
    """The estimates for rows of another length, a line each."""
    return [f"{path_shown(report.file)}: {second(report)}" for report in reports if report.second]


def line(finding: Finding, style: Style) -> str:
    """One finding. ``[*]``: ``--fix`` fixes it; ``[!]``: ``--unsafe-fixes`` does."""
    level = style.paint(finding.level, finding.level)
    text = f"{position(finding.place)}: {level}[{finding.rule}] {words(finding)}"
    match finding.fix:
        case None:
            return text
        case _ if is_offer(finding):
            return text
        case fix:
            return text + (" [*]" if fix.safe else " [!]")


def words(finding: Finding) -> str:
    """The message on one line; of a step its title and what it saves."""
    saved = change(finding.fix) if finding.fix and finding.title else ""
    text = f"{finding.title}: {saved}" if saved else finding.message
    return " ".join(printable(text).split())
