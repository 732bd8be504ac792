"""What is shown over a key: its numbers for this run, and the pages of the rules that speak there."""

import re

from advisor.engine.finding import Finding
from advisor.report.as_json import url
from advisor.report.markdown_text import escaped

from .checking import Checked
from .diagnostics import shown
from .overview import overview
from .planning import Planned
from .tables import table

MODEL = "base_model"
"""Where the verdict stands, and what is about the whole run."""
KEY = re.compile(r"^([A-Za-z_][\w-]*)\s*:")


def hover(checked: Checked, file: str, line: int, planned: Planned | None = None) -> str:
    """Markdown for one line, counted from 0; empty without anything to say. ``planned``: the run with its answer."""
    key = key_at(checked, file, line)
    blocks: list[str] = []
    if key and file == checked.path and checked.report.estimate is not None:
        blocks.append(table(checked.found.opened, key))
    if key == MODEL and file == checked.path and planned is not None and planned.answer is not None:
        blocks.append(overview(planned.report, planned.answer))
    blocks += [page(each) for each in shown(checked.report) if each.place.file == file and each.place.line == line + 1]
    return "\n\n---\n\n".join(filter(None, blocks))


def key_at(checked: Checked, file: str, line: int) -> str:
    """The key of the file's top level that stands on a line; empty without one."""
    rows = checked.report.texts.get(file, "").split("\n")
    key = KEY.match(rows[line]) if line < len(rows) else None
    return key[1] if key is not None else ""


def page(finding: Finding) -> str:
    """The page of a rule, and what it says here."""
    address = url(finding)
    name = f"[{finding.rule}]({address})" if address else f"`{finding.rule}`"
    parts = [
        f"**{name}** {escaped(finding.message)}",
        escaped(finding.why),
        f"*Cost:* {escaped(finding.cost)}" if finding.cost else "",
        f"*Source:* {escaped(finding.source, links=True)}" if finding.source else "",
    ]
    return "\n\n".join(filter(None, [*parts, f"`advisor rule {finding.rule}` has examples."]))
