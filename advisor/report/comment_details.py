"""What a comment folds away: of each config the edits step by step and the memory by part; the findings."""

import re
from collections.abc import Iterator, Sequence

from advisor.engine.answer import AnswerStep, Option
from advisor.engine.finding import Finding, Report
from advisor.memory.ledger import PARTS, Estimate
from advisor.report.comment_row import path_of
from advisor.report.findings_text import MOST_NOTES, Said, also, merged, spoken
from advisor.report.markdown_text import code, escaped, fenced, folded
from advisor.report.wording import (
    SAFETY,
    VERDICT_RULES,
    VERDICTS,
    change,
    counted,
    fill,
    is_offer,
    number,
    offers,
    room,
    room_words,
    rung_lines,
    second,
    span,
    state,
    steps,
)
from advisor.util import regex, seconds

HERE = regex(r"^(--- )\./(.*\n\+\+\+ )\./", re.MULTILINE)
"""The head of a diff of a file below the working directory."""


def details(report: Report) -> str:
    """All that is known of one config, under a line that says the most of it."""
    title = f"<b>{code(path_of(report.file), html=True)}</b>: {_title(report)}"
    return folded(title, "\n\n".join(_blocks(report)))


def _title(report: Report) -> str:
    """``2 edits bring it to 32.8 of 38.9 GiB, same training``."""
    found, answer = report.estimate, report.answer
    chosen = answer.recommended if answer else None
    if chosen is not None and chosen.end is not None and chosen.letter in {"A", "B"}:
        verb = "brings" if chosen.changes == 1 else "bring"
        ends = chosen.end.filled
        training = "same training" if chosen.training == "same" else "changes training"
        return f"{counted(chosen.changes, 'edit')} {verb} it to {ends}, {training}"
    if state(report) == "stops":
        return "does not start"
    if found is None:
        return "no verdict"
    if chosen is not None and chosen.letter == "F" and chosen.seconds and answer and answer.seconds:
        less = f"{1 - chosen.seconds / answer.seconds:.0%} off the time"
        return f"{found.filled}; {counted(chosen.changes, 'edit')}: {less}"
    return f"{VERDICTS[report.verdict]}, {found.filled}"


def _blocks(report: Report) -> Iterator[str]:
    """The answer, the ways out, what else is possible, the memory by part."""
    if report.answer is not None:
        yield escaped(report.answer.headline)
    if report.estimate is not None:
        yield f"Needed per GPU: {fill(report.estimate)}; the peak is {report.estimate.peak_phase}."
    for finding in report.findings:
        if finding.rule in VERDICT_RULES and finding.help:
            yield "\n".join(f"- {escaped(advice)}" for advice in finding.help)
    yield from _ways(report)
    if report.second:
        yield second(report)
    if report.skipped:
        yield "Not taken:\n\n" + "\n".join(f"- `{each.rule}`: {escaped(each.reason)}" for each in report.skipped)
    if report.estimate is not None:
        yield _parts_table(report.estimate)


def _ways(report: Report) -> Iterator[str]:
    """Each option; without options the plan, and what the room that is left is good for."""
    answer = report.answer
    options = answer.options if answer else ()
    named = len(options) > 1
    for option in options:
        yield from _option(option, report, named)
    taken = {step.rule for option in options for step in option.steps}
    if rungs := rung_lines(answer.rungs if answer and answer.rungs else report.rungs):
        yield "Flowchart: " + escaped("; ".join(f"{name} {word}" for name, word in rungs)) + "."
    plan = [step for step in steps(report) if step.rule not in taken]
    if plan:
        planned = report.planned
        end = f", then {VERDICTS[planned.verdict]}{planned.condition}: {fill(planned)}" if planned else ""
        yield f"{'The whole plan' if taken else 'The plan'}: {counted(len(steps(report)), 'step')}{end}"
        yield _listed(steps(report))
    if report.room and not taken & {each.rule for each in room(report)}:
        yield f"With the spare memory: {room_words(report.room)}"
        yield _listed(room(report))
    if left := [each for each in offers(report) if each.rule not in taken]:
        yield "Also possible with the memory that is left:"
        yield _listed(left)


def _option(option: Option, report: Report, named: bool) -> Iterator[str]:
    """One way out: where it ends, what writes it, its steps, its diff."""
    if option.command is None:
        least = option.best_of(report.estimate)
        best = f": {number(least)} GiB at best" if least is not None else ""
        yield f"No way with the same training{best}." if option.training == "same" else f"No other way{best}."
        return
    if named:
        ends = f": {span(option.end.needed)} GiB" if option.end else ""
        yield f"**{option.letter}, {escaped(option.title)}**{ends}; `{option.flags}`"
    yield _steps_table(option.steps)
    if option.diff:
        yield _diff(option.diff)


def _diff(text: str) -> str:
    """A diff whose files are named as annotations name them."""
    return fenced(HERE.sub(r"\1\2", text))


def _steps_table(taken: Sequence[AnswerStep]) -> str:
    """The edits in their order: what each does to the memory and to a step, and why."""
    rows = ["| step | GiB | s a step | |", "| :-- | --: | --: | :-- |"]
    for count, step in enumerate(taken, 1):
        memory = _arrow(*map(number, step.memory)) if step.memory else ""
        time = _arrow(*map(seconds, step.seconds)) if step.seconds else ""
        words = [
            step.because,
            f"Cost: {step.cost}" if step.cost else "",
            *(f"Install first: `{each}`." for each in step.requires),
        ]
        host = f"Host: {_arrow(*map(number, step.host))} GiB." if step.host and step.host[0] != step.host[1] else ""
        said = escaped(" ".join(part for part in (*words, host, *step.help) if part))
        cells = (f"{count}. {escaped(step.title)} (`{step.rule}`)", memory, time, said)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def _arrow(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _listed(findings: Sequence[Finding]) -> str:
    """Edits as a list: the rule, what it does, what that changes, each with its diff."""
    rows: list[str] = []
    for each in findings:
        number_ = f"{each.step}. " if each.step is not None else ""
        rows.append(f"- {number_}`{each.rule}`: {escaped(each.title or each.message)}; {effect(each)}")
        if each.cost:
            rows.append(f"  - cost: {escaped(each.cost)}")
        rows += _diff_rows(each)
    return "\n".join(rows)


def effect(finding: Finding) -> str:
    """``90.7 -> 77.6 GiB per GPU: tight; same training``."""
    fix = finding.fix
    return "; ".join(part for part in (change(fix), SAFETY[fix.safe]) if part) if fix else ""


def _diff_rows(finding: Finding) -> list[str]:
    """The diff of an edit, as part of an item of a list."""
    if finding.fix is None or not finding.fix.diff:
        return []
    return ["", *(f"  {row}" if row else "" for row in _diff(finding.fix.diff).splitlines()), ""]


def _parts_table(estimate: Estimate) -> str:
    """The parts of the peak."""
    rows = [f"| {part} | {number(estimate.parts[part])} |" for part in PARTS]
    peak = f"| **{estimate.peak_phase}** | **{number(estimate.allocated_peak)}** |"
    return "\n".join(["| part | GiB |", "| --- | ---: |", *rows, peak])


def findings(report: Report) -> str:
    """Errors and warnings, the first notes, and how many more: an item each."""
    found = merged([finding for finding in spoken(report) if not is_offer(finding)])
    notes = [said for said in found if said.first.level == "note"]
    shown = [*(said for said in found if said.first.level != "note"), *notes[:MOST_NOTES]]
    taken = {step.rule for option in (report.answer.options if report.answer else ()) for step in option.steps}
    rows = [row for said in shown for row in _finding_rows(said, told=said.first.rule in taken)]
    left = len(notes) - MOST_NOTES
    return "\n".join([*rows, *([f"- {code(path_of(report.file))}: {counted(left, 'more note')}"] if left > 0 else [])])


def _finding_rows(said: Said, *, told: bool) -> Iterator[str]:
    """A finding with its place and advice; with its edit, unless an option has it."""
    finding = said.first
    line = f" line {finding.place.line}{also(said)}" if finding.place.line else ""
    place = f"{code(path_of(finding.place.file))}{line}"
    yield f"- {place}, **{finding.level}** `{finding.rule}`: {escaped(finding.message)}"
    yield from (f"  - help: {escaped(advice)}" for advice in finding.help)
    if finding.why and finding.level != "note":
        yield f"  - note: {escaped(finding.why)}"
    if finding.source:
        yield f"  - source: {escaped(finding.source, links=True)}"
    if finding.fix and not told and finding.fix.diff:
        yield f"  - edit ({effect(finding)}):"
        yield from _diff_rows(finding)
