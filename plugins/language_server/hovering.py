"""What is shown over a key: its numbers for this run, and the pages of the rules that speak there."""

import re

from advisor.engine.finding import Finding
from advisor.report.as_json import url

from .checking import Checked
from .diagnostics import shown
from .tables import table

KEY = re.compile(r"^([A-Za-z_][\w-]*)\s*:")


def hover(checked: Checked, file: str, line: int) -> str:
    """Markdown for one line, counted from 0; empty where there is nothing to say."""
    rows = checked.report.texts.get(file, "").split("\n")
    key = KEY.match(rows[line]) if line < len(rows) else None
    blocks: list[str] = []
    if key is not None and file == checked.path and checked.report.estimate is not None:
        blocks.append(table(checked.found.opened, key[1]))
    blocks += [page(each) for each in shown(checked.report) if each.place.file == file and each.place.line == line + 1]
    return "\n\n---\n\n".join(filter(None, blocks))


def page(finding: Finding) -> str:
    """The page of a rule, and what it says here."""
    address = url(finding)
    name = f"[{finding.rule}]({address})" if address else f"`{finding.rule}`"
    parts = [
        f"**{name}** {finding.message}",
        " ".join(finding.why.split()),
        f"*Cost:* {' '.join(finding.cost.split())}" if finding.cost else "",
        f"*Source:* {finding.source}" if finding.source else "",
    ]
    return "\n\n".join(filter(None, [*parts, f"`advisor rule {finding.rule}` has examples."]))
