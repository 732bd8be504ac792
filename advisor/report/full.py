"""The report that people read: each finding with its line of code, the plan, and one line that counts."""

from collections.abc import Sequence

from advisor.engine.finding import Finding, Fix, Report, WholePlan
from advisor.report.snippet import diff_lines, snippet
from advisor.report.style import Style
from advisor.report.wording import (
    SAFETY,
    VERDICT_RULES,
    change,
    compared,
    counted,
    fill,
    known_words,
    offers,
    remarks,
    room,
    room_words,
    rung_lines,
    second,
    status,
    steps,
    totals,
)
from advisor.util import path_shown


def render(reports: Sequence[Report], style: Style) -> str:
    """All files in their order, blank lines between blocks, none between files of one line each."""
    explained: set[str] = set()
    blocks = [block for report in reports for block in report_blocks(report, style, explained)]
    if len(reports) > 1 or any(report.findings or report.fixed for report in reports):
        blocks.append(style.prose(totals(reports)))
    text = ""
    for before, block in zip([[], *blocks], blocks, strict=False):
        close = len(before) == 1 and len(block) == 1
        text += ("\n" if close else "\n\n" if text else "") + "\n".join(block)
    return text


def report_blocks(report: Report, style: Style, explained: set[str]) -> list[list[str]]:
    """Findings, plan, skipped steps, suggestions; the status line if no finding has said the verdict.

    ``explained`` are the rules whose reason has been given; notes leave it to ``advisor rule``.
    """
    blocks = [_applied_block(report, style)] if report.applied else []
    for finding in remarks(report):
        reasoned = finding.level != "note" and finding.rule not in explained | VERDICT_RULES
        blocks.append(finding_block(finding, report, style, reasoned=reasoned))
        explained.add(finding.rule)
    if plan := steps(report):
        blocks.append([heading(report, len(plan), style), *_rungs_block(report, style)])
        blocks += [step_block(step, style) for step in plan]
    if report.skipped:
        blocks.append(_skipped_block(report, style))
    if report.room:
        blocks.append(_room_block(report.room, room(report), style))
    if offered := offers(report):
        blocks.append(_offers_block(offered, style))
    told = any(finding.rule in VERDICT_RULES for finding in report.findings)
    if not told and (report.estimate is not None or not report.findings):
        blocks.append([_status_line(report, style)])
    if said := second(report):
        blocks.append(style.prose(said, f"{path_shown(report.file)}: ", indent=2))
    if report.against is not None:
        blocks.append(_against_lines(report, style))
    return blocks


def _against_lines(report: Report, style: Style) -> list[str]:
    """What has changed since the revision that is compared with."""
    assert report.against is not None
    words = "; ".join(filter(None, (compared(report), known_words(report))))
    return style.prose(words, f"{path_shown(report.file)} against {path_shown(report.against.revision)}: ", "strong")


def _applied_block(report: Report, style: Style) -> list[str]:
    """What ``--fix`` did, a line each."""
    lines: list[str] = []
    for finding in report.applied:
        words = change(finding.fix) if finding.fix else ""
        lines += style.prose(
            "; ".join(part for part in (finding.title, words) if part), f"fixed {finding.rule}: ", "help", indent=2
        )
    return lines


def _status_line(report: Report, style: Style) -> str:
    """The status line with its verdict in colour."""
    file, colon, rest = status(report).partition(": ")
    return file + colon + style.paint(rest, report.verdict if report.verdict != "unknown" else "strong")


def finding_block(finding: Finding, report: Report, style: Style, *, reasoned: bool) -> list[str]:
    """``error[rule]: message``, the line of code, advice, reason, source, and the edit that fixes it."""
    lines = style.prose(finding.message, f"{finding.level}[{finding.rule}]: ", finding.level, indent=2)
    shown = snippet(finding.place, report.texts, style, finding.level)
    lines += shown
    edge = " " * (len(str(finding.place.line)) + 1 if finding.place.line else 3)
    said: list[str] = []
    for advice in finding.help:
        said += style.prose(advice, f"{edge}= help: ", "help")
    if finding.why and reasoned:
        said += style.prose(finding.why, f"{edge}= note: ", "note")
    if finding.fix:
        said += _fix_lines(finding.fix, edge, style)
    if said and len(shown) > 1:
        lines.append(style.paint(f"{edge}|", "frame"))
    return lines + said


def _fix_lines(fix: Fix, edge: str, style: Style) -> list[str]:
    """How a finding is fixed: which option writes the edit, then the edit."""
    option = "`-p` offers" if fix.by_choice else "--fix writes" if fix.safe else "--unsafe-fixes writes"
    words = "; ".join(part for part in (change(fix), SAFETY[fix.safe]) if part)
    lines = style.prose(f"{option} this edit ({words})", f"{edge}= help: ", "help")
    return [*lines, *diff_lines(fix.diff, style, f"{edge}  ")]


def heading(report: Report, count: int, style: Style) -> str:
    """``plan for a.yaml: 3 steps, then it fits (61.0 to 66.2 of 78.2 GiB)``."""
    planned = report.planned
    file = path_shown(report.file)
    if planned is None:
        return style.paint(f"plan for {file}: {counted(count, 'step')}", "strong")
    end = {"fits": "then it fits", "tight": "then it is tight", "does-not-fit": "and it still does not fit"}
    words = f"plan for {file}: {counted(count, 'step')}, {end[planned.verdict]}{planned.condition} ({fill(planned)})"
    return "\n".join(style.paint(line, "strong") for line in style.prose(words, indent=2))


def _rungs_block(report: Report, style: Style) -> list[str]:
    """The user's flowchart, a rung a line."""
    lines = rung_lines(report.rungs)
    width = 2 + max((len(name) for name, _ in lines), default=0)
    return [line for name, word in lines for line in style.prose(word, f"  {name:<{width}}", indent=width + 2)]


def step_block(finding: Finding, style: Style) -> list[str]:
    """A numbered step: its title, what it saves, whether the training stays the same, its cost, its diff."""
    number = f"{finding.step}. "
    margin = " " * len(number)
    lines = style.prose(finding.title or finding.message, f"{number}{finding.rule}: ", "strong", indent=len(number))
    fix = finding.fix
    if fix is None:
        return lines
    words = "; ".join(part for part in (change(fix), SAFETY[fix.safe]) if part)
    if not finding.offered:
        words += " (left out: needs --unsafe-fixes)"
    lines += style.prose(words, margin)
    if finding.why:
        lines += style.prose(finding.why, f"{margin}why: ")
    if finding.cost:
        lines += style.prose(finding.cost, f"{margin}cost: ")
    for advice in finding.help:
        lines += style.prose(advice, f"{margin}help: ", "help")
    return [*lines, *diff_lines(fix.diff, style, margin)]


def _skipped_block(report: Report, style: Style) -> list[str]:
    """The skipped steps, each with its numbers."""
    lines = [style.paint("skipped:", "strong")]
    for skipped in report.skipped:
        lines += style.prose(skipped.reason, f"  {skipped.rule}: ", indent=4)
    return lines


def _room_block(whole: WholePlan, findings: Sequence[Finding], style: Style) -> list[str]:
    """The sequence that the room is good for: where it leads, its steps, its diff."""
    lines = style.prose(
        f"{room_words(whole)}; {SAFETY[whole.safe]}", "with the room that is left: ", "strong", indent=2
    )
    for finding in findings:
        lines += style.prose(finding.title or finding.message, f"  {finding.rule}: ", indent=4)
        lines += style.prose(change(finding.fix), "    ") if finding.fix else []
    lines += style.prose("`--fix --faster` writes it", "  = help: ", "help")
    return [*lines, *diff_lines(whole.diff, style, "  ")]


def _offers_block(offered: Sequence[Finding], style: Style) -> list[str]:
    """What the room that is left could buy; advice that ``--fix`` leaves alone."""
    lines = [style.paint("also possible with the memory that is left (advice; --fix does not apply it):", "strong")]
    for finding in offered:
        lines += style.prose(finding.title or finding.message, f"  {finding.rule}: ", indent=4)
        assert finding.fix is not None, "an offer is a finding with a fix"
        lines += style.prose(f"{change(finding.fix)}; {SAFETY[finding.fix.safe]}", "    ")
    return lines
