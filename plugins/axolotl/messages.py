"""What the plugin says of a run: the whole report where it is blocked, else the verdict and what speaks against it."""

import sys
from collections.abc import Sequence

from advisor.engine.blocking import in_one_line
from advisor.engine.finding import Finding, Report
from advisor.report import render_check
from advisor.report.terminal import colored, draws, width


def refusal(report: Report, against: Sequence[Finding], *, whole: bool) -> str:
    """The last words of a rank: the whole report, or a line that says where it is."""
    rules = ", ".join(dict.fromkeys(finding.rule for finding in against))
    if not whole:
        return f"advisor: blocked by {rules}; see local rank 0's output"
    text = render_check([report], "full", color=colored(sys.stderr), width=width(), unicode=draws(sys.stderr))
    return (
        f"{text}\n"
        f"advisor: blocked by {rules}. To train anyway: `advisor: {{mode: warn}}` in {report.file}, or the comment\n"
        f"advisor: `# advisor: file-ignore[{rules}] reason` at its top"
    )


def verdict(report: Report) -> str:
    """The verdict in one line, with errors and warnings in a line each."""
    shown = report.without_notes()
    lines = render_check([shown], "concise") if shown.findings else ""
    return "\n".join(part for part in (in_one_line(report), lines) if part)
