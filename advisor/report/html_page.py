"""One HTML file without a script: verdict, memory, plan, time, cards, findings, ledger. For browsers and paper."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from advisor.about import VERSION
from advisor.engine.finding import Finding, Report
from advisor.report.as_json import url
from advisor.report.html_answer import banner, before_and_after, options
from advisor.report.html_markup import Piece, bar, diff, folded, listed, plain, prose, scrolling, table, tag
from advisor.report.html_memory import ledger, memory
from advisor.report.html_plan import plan, room
from advisor.report.html_timeline import over_time
from advisor.report.style import Style
from advisor.report.time import Training, run_lines
from advisor.report.wording import (
    ON,
    VERDICT_RULES,
    VERDICTS,
    compared,
    fill,
    known_words,
    number,
    remarks,
    span,
    totals,
)
from advisor.speed import StepTime, Unpriced
from advisor.speed.step_time import KINDS
from advisor.util import seconds

STYLE = Path(__file__).with_name("html.css")
# Nothing in a report may run, and nothing may be fetched: browsers hold that, whatever a file name says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(reports: Sequence[Report], _style: Style) -> str:
    """The page of all reports."""
    return "".join(pieces(reports))


def pieces(reports: Sequence[Report]) -> Iterator[str]:
    """The same, a report at a time; with many, a table of contents goes first."""
    names = ", ".join(report.file for report in reports[:3]) or "nothing to check"
    yield opening(names)
    if len(reports) > 1:
        yield contents(reports)
    for place, report in enumerate(reports):
        yield section(report, place, is_folded=len(reports) > 1)
    yield closing(totals(reports))


def opening(title: str) -> str:
    """The head of a page, up to its first section."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">'
        f"<title>advisor: {plain(title)}</title><style>{css()}</style></head><body><main><h1>advisor</h1>"
    )


def closing(words: str = "") -> str:
    """The end of a page: these words, and which advisor wrote it."""
    said = " ".join(filter(None, (words, f"advisor {VERSION}")))
    return f"<footer><p>{plain(said)}</p></footer></main></body></html>"


def css() -> str:
    """The style, each rule on one line of the page."""
    return " ".join(line.strip() for line in STYLE.read_text(encoding="utf-8").splitlines())


def contents(reports: Sequence[Report]) -> str:
    """One row a file, which leads to its section."""
    rows = (
        (
            f'<a href="#run-{place}">{plain(report.file)}</a>',
            tag("span", VERDICTS[report.verdict], f"badge {report.verdict}"),
            plain(report.hardware or ""),
            span(report.estimate.needed) if report.estimate else "",
            number(report.estimate.usable) if report.estimate else "",
        )
        for place, report in enumerate(reports)
    )
    return scrolling(table("All configs, GiB", ("Config", "Verdict", "GPUs", "needed", "usable"), rows))


def section(report: Report, place: int = 0, training: Training | None = None, *, is_folded: bool = False) -> str:
    """All there is to say of one report, the most important first; ``is_folded``: below the answer on a click."""
    about = tag("p", plain("; ".join(part for part in (report.summary, report.hardware) if part)))
    head = f'<section id="run-{place}"><h2>{plain(report.file)}</h2>{about}{_answer(report)}{against(report)}'
    rest = _details(report, training or Training())
    return f"{head}{folded('Details', rest) if is_folded and rest else rest}</section>"


def _details(report: Report, training: Training) -> str:
    """What stands below the answer."""
    found, answer = report.estimate, report.answer
    blocks = [
        before_and_after(report, answer) + options(report, answer) if answer else "",
        memory(found) if found else "",
        over_time(report.timeline, found.usable) if found else "",
        plan(report),
        time(report.time, training),
        findings([each for each in remarks(report) if answer is None or each.rule not in VERDICT_RULES]),
        room(report),
        cards(report.cards, report.card_notes),
        ledger(found) if found else "",
    ]
    return "".join(blocks)


def _answer(report: Report) -> str:
    """The answer; where nobody asked for one, the verdict alone."""
    return verdict(report) if report.answer is None else banner(report, report.answer)


def verdict(report: Report) -> str:
    """The answer, in one line."""
    found = report.estimate
    if report.hardware is None:
        return tag(
            "p", "Memory unknown: no GPUs are stated" if report.summary else "A DeepSpeed config", "verdict unknown"
        )
    words = f"{ON[report.verdict].capitalize()} {report.hardware}"
    if found is not None:
        words += f"{found.condition}: {fill(found)}" + (" are counted" if report.verdict == "unknown" else "")
    return tag("p", plain(words), f"verdict {report.verdict}")


def against(report: Report) -> str:
    """What has changed since the revision that is compared with."""
    if report.against is None:
        return ""
    words = "; ".join(filter(None, (compared(report), known_words(report))))
    return tag("p", f"Against {tag('code', plain(report.against.revision))}: <b>{plain(words)}</b>")


def time(found: StepTime | Unpriced | None, training: Training) -> str:
    """The time of a step by kind; why there is none; nothing where nobody asked."""
    if found is None:
        return ""
    head = tag("h3", "Time of a step")
    if isinstance(found, Unpriced):
        return head + tag("p", prose(f"Unknown: {found.reason}" + (f"; {found.remedy}" if found.remedy else "")))
    words = f"{seconds(found.low)} to {seconds(found.high)} s, likely {seconds(found.expected)};"
    words += f" {found.tokens_per_second_per_gpu:,.0f} tokens a second on each GPU"
    shares = found.by_kind()
    rows = [
        (kind, bar([Piece("time", 0, shares[kind])], found.expected), seconds(shares[kind]))
        for kind in KINDS
        if shares[kind] > 0
    ]
    doubts = tag("p", plain(f"A rough figure: {', '.join(found.doubts)}"), "small") if found.doubts else ""
    whole = "".join(run_lines(found, training.run, training, Style(width=1000)) if training.run else ())
    return (
        head
        + tag("p", words)
        + doubts
        + tag("p", plain(whole)) * bool(whole)
        + table("Seconds by kind of work", ("Work", "Share", "s"), rows, "chart")
    )


def findings(found: Sequence[Finding]) -> str:
    """What is wrong, the most severe first, each with its page, its reason and its edit."""
    return tag("h3", "Findings") + listed(map(finding, found), "findings") if found else ""


def finding(found: Finding) -> str:
    """One of them."""
    page = url(found)
    name = f'<a href="{plain(page)}">{plain(found.rule)}</a>' if page else tag("code", plain(found.rule))
    where = f"{found.place.file}:{max(1, found.place.line)}" if found.place.line else found.place.file
    head = f"{tag('span', found.level, 'badge ' + found.level)} <b>{name}</b> {tag('small', plain(where))}"
    lines = [tag("p", f"{head}<br>{prose(found.message)}"), *(tag("p", prose(words)) for words in found.help)]
    why = [words for words in (found.why, found.source) if words]
    lines += [folded("Why", "".join(tag("p", prose(words)) for words in why))] if why else []
    lines += [folded("Edit", diff(found.fix.diff))] if found.fix and found.fix.diff else []
    return "".join(lines)


def cards(rows: Iterable[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """The cards that would do, as ``advisor hardware`` lists them: heads first, then a row each; and what it says."""
    heads, *others = rows or ((),)
    if not others:
        return ""
    shown = [place for place in range(len(heads)) if any(cells[place] for cells in others)]
    kept = [[plain(cells[place]) for place in shown] for cells in others]
    body = table("First the cheapest, where prices are known", [heads[place] for place in shown], kept)
    said = listed(map(prose, notes)) if notes else ""
    return tag("h3", "GPUs that would work") + scrolling(body) + said


def hardware(file: str, rows: Iterable[Sequence[str]], notes: Sequence[str]) -> str:
    """The page of ``advisor hardware``."""
    return f"{opening(file)}<section><h2>{plain(file)}</h2>{cards(rows, notes)}</section>{closing()}"


def estimate(report: Report, training: Training) -> str:
    """The page of ``advisor estimate``: as of a check, with hours and cost of the whole run."""
    return f"{opening(report.file)}{section(report, training=training)}{closing()}"
