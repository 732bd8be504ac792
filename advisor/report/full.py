"""The report that people read: the answer, the way there, then what else was found."""

from collections.abc import Iterator, Sequence

from advisor.engine.answer import Reason
from advisor.engine.finding import PLANNED, Finding, Fix, Report
from advisor.report.answer_text import (
    bars,
    evidence_lines,
    file_lead,
    flowchart_lines,
    headline_lines,
    options_table,
    other_ways_lines,
    outlook_lines,
    passed_over_lines,
    skipped_lines,
    step_lines,
)
from advisor.report.findings_text import finding_lines, spoken, totals_of
from advisor.report.snippet import diff_lines, snippet
from advisor.report.style import Style
from advisor.report.wording import (
    SAFETY,
    VERDICT_RULES,
    VERDICTS,
    change,
    compared,
    known_words,
    second,
    status,
    totals,
)
from advisor.util import as_typed, path_shown


def render(reports: Sequence[Report], style: Style) -> str:
    """All files in their order, blank lines between blocks, none between files of one line each."""
    alone = len(reports) == 1
    blocks = [block for report in reports for block in report_blocks(report, style, alone=alone) if block]
    if len(reports) > 1:
        blocks.append(style.prose(totals(reports)))
    text = ""
    for before, block in zip([[], *blocks], blocks, strict=False):
        close = not alone and len(before) == 1 and len(block) == 1
        text += ("\n" if close else "\n\n" if text else "") + "\n".join(block)
    return text


def report_blocks(report: Report, style: Style, *, alone: bool) -> Iterator[list[str]]:
    """What was written, the answer, the findings, the line that closes; as much of it as the style asks for."""
    if report.fixed:
        from advisor.report.fixed_text import fixed_lines

        yield fixed_lines(report, style)
    yield from _answer_blocks(report, style, alone=alone)
    if style.detail == "quiet":
        return
    if style.detail == "verbose":
        yield from (_finding_block(finding, report, style) for finding in _verbose_findings(report))
        yield skipped_lines(report, style)
    else:
        yield finding_lines(report, style, alone=alone)
    if said := second(report):
        yield style.prose(said, f"{path_shown(report.file)}: ", indent=2)
    if report.against is not None:
        yield _against_lines(report, style)
    if alone and (spoken(report) or report.verdict in PLANNED):
        written, folded = "" if report.fixed else "Nothing was written.", style.detail != "verbose"
        yield style.prose(totals_of(report, _closing(report), written, folded=folded))
    if alone and report.seen:
        yield style.prose(report.seen)


def _answer_blocks(report: Report, style: Style, *, alone: bool) -> Iterator[list[str]]:
    """The answer in the order in which it is asked: fits? what to do? how far, at what cost, by which edits?"""
    answer, verbose = report.answer, style.detail == "verbose"
    if answer is None:
        yield _status_lines(report, style)
        return
    said = headline_lines(report, answer, style, lead="" if alone else file_lead(report))
    if style.detail != "quiet" and (alone or verbose):
        said += outlook_lines(answer, style)
    yield said
    if report.fixed and report.verdict == "fits" and not verbose:
        return
    chosen = answer.recommended
    if style.detail == "quiet":
        yield options_table(report, answer, style) if len(answer.options) > 1 else []
        return
    if not (alone or verbose):
        return
    yield _cards_block(report, style)
    yield bars(report, answer, style)
    yield evidence_lines(report, answer, style) if verbose else []
    yield [*options_table(report, answer, style), *other_ways_lines(answer, style)]
    yield [*flowchart_lines(answer.rungs, answer, style), *passed_over_lines(answer, style)]
    if chosen is not None:
        yield step_lines(chosen, style, verbose=verbose)
        yield [] if verbose else list(diff_lines(chosen.diff, style))


def _cards_block(report: Report, style: Style) -> list[str]:
    """The cards that would do, where none is stated."""
    if report.hardware is not None or not report.cards:
        return []
    from advisor.report.cards import few, text

    if style.detail == "verbose":
        return text(report.cards, report.card_notes, style).splitlines()
    lines = text(few(report.cards), (), style).splitlines()
    lines += style.prose(report.card_caption) if report.card_caption else []
    return [*lines, *style.prose(f"All that would do: `{as_typed('advisor', 'hardware', report.file)}`")]


def _closing(report: Report) -> str:
    """The verdict in a word or two."""
    if report.answer is not None and not report.answer.starts:
        return "does not start"
    if report.answer is not None and report.answer.reason == Reason("no-gpus"):
        return "no GPUs stated"
    return VERDICTS[report.verdict] if report.verdict != "unknown" else "no verdict"


def _against_lines(report: Report, style: Style) -> list[str]:
    """What has changed since the revision that is compared with."""
    assert report.against is not None
    words = "; ".join(filter(None, (compared(report), known_words(report))))
    return style.prose(words, f"{path_shown(report.file)} against {path_shown(report.against.revision)}: ", "strong")


def _status_lines(report: Report, style: Style) -> list[str]:
    """The status line with its verdict in colour; wrapped, without."""
    lines = style.prose(status(report), indent=2)
    if len(lines) > 1:
        return lines
    file, colon, rest = lines[0].partition(": ")
    return [file + colon + style.paint(rest, report.verdict if report.verdict != "unknown" else "strong")]


def _verbose_findings(report: Report) -> list[Finding]:
    """What is said in full: the verdict's own finding comes first, where the answer does not say the same."""
    said = {PLANNED["does-not-fit"]} if report.answer is not None and report.answer.starts else set[str]()
    verdict = [finding for finding in report.findings if finding.rule in VERDICT_RULES - said]
    return [*verdict, *spoken(report)]


def _finding_block(finding: Finding, report: Report, style: Style) -> list[str]:
    """``error[rule]: message``, the line of code, advice, reason, source, and the edit that fixes it."""
    lines = style.prose(finding.message, f"{finding.level}[{finding.rule}]: ", finding.level, indent=2)
    shown = snippet(finding.place, report.texts, style, finding.level)
    lines += shown
    edge = " " * (len(str(finding.place.line)) + 1 if finding.place.line else 3)
    said: list[str] = []
    for advice in finding.help:
        said += style.prose(advice, f"{edge}= help: ", "help")
    for name, text in (("note", finding.why), ("source", finding.source)):
        said += style.prose(text, f"{edge}= {name}: ", "note") if text else []
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
