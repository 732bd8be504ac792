"""What the plugin says of a run: where it is blocked the ways out, else the verdict and what speaks against it."""

from collections.abc import Sequence

from advisor.cli.question.blocked import blocked_lines
from advisor.cli.question.starting import rest_against, verdict_lines
from advisor.engine.finding import Finding
from advisor.report import render_check
from advisor.session import CheckedRun
from advisor.util import path_shown


def refusal(checked: CheckedRun, against: Sequence[Finding], *, whole: bool) -> str:
    """The last words of a rank: five lines at most, or one that says where they are."""
    if not whole:
        rules = ", ".join(dict.fromkeys(finding.rule for finding in against))
        return f"advisor: blocked by {rules}; see local rank 0's output"
    anyway = "to train anyway: `advisor: {mode: warn}` in the config"
    lines = blocked_lines(checked, tuple(against), anyway, here=True)
    return "\n".join(f"advisor: {path_shown(line)}" for line in lines)


def verdict(checked: CheckedRun) -> str:
    """The verdict in one line, with errors and warnings in a line each."""
    shown = rest_against(checked)
    lines = render_check([shown], "concise") if shown.findings else ""
    return "\n".join(part for part in (*verdict_lines(checked, with_options=False), lines) if part)
