"""A comment for a pull request: the verdicts as a table, findings, plans with their diffs, details folded."""

import re
from collections.abc import Sequence

from advisor.engine.finding import Finding, Fix, Report
from advisor.memory.ledger import PARTS, Estimate
from advisor.report.snippet import lines_of
from advisor.report.style import Style
from advisor.report.wording import (
    SAFETY,
    VERDICTS,
    change,
    compared,
    counted,
    fill,
    known_words,
    number,
    offers,
    position,
    remarks,
    room,
    room_words,
    rung_lines,
    second,
    span,
    steps,
    totals,
)
from advisor.util import path_shown, printable, regex


def render(reports: Sequence[Report], _style: Style) -> str:
    """The whole comment, in GitHub's Markdown, which GitLab reads too."""
    blocks = ["### advisor", table(reports)]
    if any(report.against for report in reports):
        blocks.append(changes(reports))
    for report in reports:
        blocks += report_blocks(report)
    return "\n\n".join([*blocks, re.sub(r"(--[a-z-]+)", r"`\1`", totals(reports))])


def table(reports: Sequence[Report]) -> str:
    """One row a file."""
    rows = [
        "| config | GPUs | verdict | needed per GPU, GiB | usable, GiB |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for report in reports:
        found = report.estimate
        needed, usable = (span(found.needed), number(found.usable)) if found else ("", "")
        verdict = f"**{VERDICTS[report.verdict]}**{found.grounds if found else ''}"
        cells = (code(report.file), report.hardware or "", verdict, needed, usable)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def changes(reports: Sequence[Report]) -> str:
    """What each config needs against the base: one line a file."""
    lines = [
        f"- {code(report.file)} against {code(report.against.revision)}: **{compared(report)}**" + quiet(report)
        for report in reports
        if report.against
    ]
    return "\n".join(lines)


def quiet(report: Report) -> str:
    """How much is not repeated."""
    words = known_words(report)
    return f" ({escaped(words)})" if words else ""


def report_blocks(report: Report) -> list[str]:
    """What there is to say of one file beyond its row."""
    blocks = [f"{code(report.file)}: {second(report)}"] if report.second else []
    blocks += [finding_block(finding) for finding in remarks(report)]
    if plan := steps(report):
        rungs = ", ".join(f"{name}: {word}" for name, word in rung_lines(report.rungs))
        blocks += [heading(report, len(plan)), *([escaped(rungs)] if rungs else [])]
        blocks += [step_block(step) for step in plan]
    if report.skipped:
        passed = "\n".join(f"- `{each.rule}`: {escaped(each.reason)}" for each in report.skipped)
        blocks.append(folded("skipped", passed))
    if report.room:
        blocks.append(folded(f"with the room that is left: {room_words(report.room)}", listed(room(report))))
    if suggestions := offers(report):
        blocks.append(folded("also possible with the memory that is left", listed(suggestions)))
    if report.estimate:
        blocks.append(folded(f"memory of {code(report.file, html=True)} by part", _parts_table(report.estimate)))
    return blocks


def listed(findings: Sequence[Finding]) -> str:
    """Edits as a list: the rule, what it does, what that changes."""
    return "\n".join(f"- `{each.rule}`: {escaped(each.title or each.message)}; {effect(each)}" for each in findings)


def finding_block(finding: Finding) -> str:
    """A finding with its advice, and its edit as a diff."""
    lines = [f"**{finding.level}** `{finding.rule}` at {code(position(finding.place))}: {escaped(finding.message)}"]
    lines += [f"- help: {escaped(advice)}" for advice in finding.help]
    if finding.why:
        lines.append(f"- note: {escaped(finding.why)}")
    if finding.source:
        lines.append(f"- source: {escaped(finding.source, links=True)}")
    text = lines[0] + ("\n\n" + "\n".join(lines[1:]) if len(lines) > 1 else "")
    return text + _diff_block(finding.fix, f"edit ({effect(finding)})")


def heading(report: Report, count: int) -> str:
    """Title of the plan, and where it ends."""
    planned = report.planned
    end = f", then {VERDICTS[planned.verdict]}{planned.condition}: {fill(planned)}" if planned else ""
    return f"#### Plan for {code(report.file)}: {counted(count, 'step')}{end}"


def step_block(finding: Finding) -> str:
    """One step, numbered by hand so that the diff between the items does not restart the list."""
    words = [escaped(finding.title or finding.message), effect(finding)]
    cost = f"<br>Cost: {escaped(finding.cost)}" if finding.cost else ""
    return f"**{finding.step}. `{finding.rule}`** " + "<br>".join(words) + cost + _diff_block(finding.fix)


def effect(finding: Finding) -> str:
    """``90.7 -> 77.6 GiB per GPU: tight; same training``."""
    fix = finding.fix
    return "; ".join(part for part in (change(fix), SAFETY[fix.safe]) if part) if fix else ""


def _diff_block(fix: Fix | None, title: str = "") -> str:
    """The edit in a fence that is longer than any run of backticks inside."""
    if fix is None or not fix.diff:
        return ""
    fence = fence_for(fix.diff)
    lead = f"\n\n{title}" if title else ""
    rows = "\n".join(printable(row) for row in lines_of(fix.diff.rstrip()))
    return f"{lead}\n\n{fence}diff\n{rows}\n{fence}"


def fence_for(text: str) -> str:
    """Backticks, more than any run of them inside."""
    return "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def _parts_table(estimate: Estimate) -> str:
    """The parts of the peak."""
    rows = [f"| {part} | {number(estimate.parts[part])} |" for part in PARTS]
    peak = f"| **{estimate.peak_phase}** | **{number(estimate.allocated_peak)}** |"
    return "\n".join(["| part | GiB |", "| --- | ---: |", *rows, peak])


def folded(title: str, body: str) -> str:
    """Shown on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def code(text: str, *, html: bool = False) -> str:
    """Text as code; as HTML inside a summary, where Markdown is not read, and where a mark could end code or cell."""
    shown = path_shown(text)
    if not html and not {"`", "|", "\\"} & set(shown):
        return f"`{shown}`"
    marks = re.sub(r"[^\w\s./-]|(?<=www)\.", lambda mark: f"&#{ord(mark.group())};", shown, flags=re.IGNORECASE)
    return f"<code>{marks}</code>"


SPAN = regex(r"(?<!`)(`{1,8})(?!`)([^`]+)\1(?!`)")
"""Code, where it closes and holds no backtick (CommonMark 0.31, 6.1, allows more)."""


NO_LINK = regex(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=(?<!\w)@)(?=\w)|(?<=[#!])(?=\d)", re.IGNORECASE)
"""Where an address, a mention or the number of an issue comes apart (GitHub Flavored Markdown 0.29, 6.9)."""


def escaped(text: str, *, links: bool = False) -> str:
    """A message as Markdown: what is not code cannot open code, a tag, a link, mention a person or break the line.

    ``links``: addresses may be ones, where the text is of a rule and holds nothing of a file.
    """
    flat = " ".join(printable(text).split())
    said, after = "", 0
    for found in SPAN.finditer(flat):
        said += plain(flat[after : found.start()], links=links) + found.group()
        after = found.end()
    return said + plain(flat[after:], links=links)


def plain(text: str, *, links: bool = False) -> str:
    """Text outside of code."""
    apart = text if links else NO_LINK.sub("\u200b", text)
    marked = re.sub(r"[\\`\[]", r"\\\g<0>", apart.replace("&", "&amp;").replace("<", "&lt;"))
    return marked.replace("\u200b", "&#8203;")
