"""The plan as a waterfall: what each step takes off, whether it changes the training, its diff below."""

from collections.abc import Sequence

from advisor.engine.finding import Finding, Fix, Report
from advisor.memory.ledger import Estimate
from advisor.report.html_markup import Piece, bar, diff, folded, legend, plain, prose, table, tag
from advisor.report.wording import (
    SAFETY,
    VERDICTS,
    change,
    counted,
    fill,
    number,
    offers,
    room_words,
    rung_lines,
    steps,
)
from advisor.report.wording import room as sequence
from advisor.util import gib

ROLES = {True: "same", False: "changes"}


def plan(report: Report) -> str:
    """The steps as a picture and as a list, unless the options tell them; nothing without a plan."""
    found = [step for step in steps(report) if step.fix]
    if not found or report.estimate is None:
        return ""
    if _is_told(report):
        return rungs(report) + skipped(report)
    planned = report.planned
    end = f", then {VERDICTS[planned.verdict]}{planned.condition}: {fill(planned)}" if planned else ""
    title = tag("h3", plain(f"Plan: {counted(len(found), 'step')}{end}"))
    return (
        title
        + rungs(report)
        + _waterfall(report.estimate, found)
        + tag("ol", "".join(map(step, found)))
        + skipped(report)
    )


def _is_told(report: Report) -> bool:
    """Whether the options already tell the steps, with their edits."""
    return report.answer is not None and any(option.steps and option.command for option in report.answer.options)


def rungs(report: Report) -> str:
    """The user's flowchart, a word for each rung."""
    found = report.answer.rungs if report.answer is not None and report.answer.rungs else report.rungs
    rows = [(plain(name), plain(word)) for name, word in rung_lines(found)]
    return folded("The flowchart, rung by rung", table("Rungs", ("Rung", "Outcome"), rows)) if rows else ""


def _waterfall(estimate: Estimate, found: Sequence[Finding]) -> str:
    """The run as written, then each step on top of those before it."""
    written = estimate.needed.low
    most = max(written, estimate.usable, *(each.fix.before or 0 for each in found if each.fix)) * 1.02
    rows = [("as written", bar([Piece("rest", 0, written)], most, estimate.usable), number(written), "")]
    left = written
    for each in found:
        fix = each.fix
        assert fix is not None
        before, left = left, left if fix.after is None else fix.after
        drawn = [Piece("rest", 0, min(before, left)), _falling(fix, before, left)]
        rows.append((plain(each.rule), bar(drawn, most, estimate.usable), number(left), SAFETY[fix.safe]))
    words = [("same", SAFETY[True]), ("changes", SAFETY[False]), ("limit", f"usable: {number(estimate.usable)}")]
    heads = ("Step", "Bar", "GiB", "Training")
    return table("The plan, GiB needed on each GPU after each step", heads, rows, "chart") + legend(words)


def _falling(fix: Fix, before: int, after: int) -> Piece:
    """What a step takes off, or adds."""
    verb = "frees" if after <= before else "takes"
    return Piece(ROLES[fix.safe], min(before, after), max(before, after), f"{verb} {gib(abs(before - after))}")


def step(found: Finding) -> str:
    """What a step is, what it costs, and its edit."""
    fix = found.fix
    assert fix is not None
    head = f"{tag('b', plain(found.rule))} {tag('span', SAFETY[fix.safe], 'badge ' + ROLES[fix.safe])}"
    lines = [f"{head}<br>{prose(found.title or found.message)}", plain(change(fix))]
    lines += [f"Cost: {prose(found.cost)}"] if found.cost else []
    lines += [prose(words) for words in found.help]
    body = "".join(tag("p", line) for line in lines if line)
    why = folded("Why", tag("p", prose(found.why))) if found.why else ""
    return tag("li", body + why + (folded("Edit", diff(fix.diff), unfolded=True) if fix.diff else ""))


def skipped(report: Report) -> str:
    """The steps that the plan leaves out."""
    if not report.skipped:
        return ""
    items = "".join(tag("li", f"{tag('code', plain(each.rule))} {prose(each.reason)}") for each in report.skipped)
    return folded("Steps that were skipped", tag("ul", items))


def room(report: Report) -> str:
    """What the memory that is left allows: the sequence that is fastest with its edit, then what stands by itself."""
    whole = report.room
    title = tag("h3", f"With the spare memory: {plain(room_words(whole))}") if whole else ""
    found = title + listed(sequence(report)) + (folded("Edit", diff(whole.diff)) if whole else "")
    others = listed(offers(report))
    return found + (tag("h3", "Also possible with the memory that is left") + others if others else "")


def listed(findings: Sequence[Finding]) -> str:
    """Edits as a list: the rule, what it does, what that changes."""
    items = [
        f"{tag('b', plain(each.rule))} {prose(each.title or each.message)}<br>{plain(change(each.fix))}"
        for each in findings
        if each.fix
    ]
    return tag("ul", "".join(tag("li", item) for item in items)) if items else ""
