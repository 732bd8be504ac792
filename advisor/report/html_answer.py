"""The answer at the head of a page: headline and action, before and after, the options with what to type."""

from collections.abc import Iterator, Sequence

from advisor.engine.answer import Answer, AnswerStep, Option
from advisor.engine.finding import Report
from advisor.memory.ledger import Estimate
from advisor.report.html_markup import Piece, bar, diff, folded, plain, prose, table, tag
from advisor.report.wording import SAFETY, arrow, counted, number
from advisor.util import GIB, seconds


def banner(report: Report, answer: Answer) -> str:
    """Does it fit, and what to do; with the command of the option to take."""
    role = report.verdict if answer.starts else "does-not-fit"
    chosen = answer.recommended
    said = [tag("p", tag("b", plain(answer.headline)))]
    said += [tag("p", prose(words)) for words in (answer.action, answer.assumed) if words]
    said += [tag("p", tag("code", plain(chosen.command)))] if chosen is not None and chosen.command else []
    return tag("div", "".join(said), f"verdict {role}")


def before_and_after(report: Report, answer: Answer) -> str:
    """What one GPU needs now, and after the option to take, against the card; of the host where that is short."""
    found, chosen = report.estimate, answer.recommended
    if found is None or not answer.starts or found.verdict == "unknown":
        return ""
    if answer.reason is not None and answer.reason.where == "host" and found.host_usable:
        rows = [("host", found.host_peak, found.host_usable), ("GPU", found.needed.high, found.usable)]
        return "".join(_bars([each], each[2]) for each in rows)
    after = chosen.end if chosen is not None and chosen.letter != "C" else None
    ends = [("now", found.needed.high, found.usable)]
    if after is not None:
        ends.append(("after", after.needed.high, after.usable))
    return _bars(ends, found.usable)


def _bars(rows: Sequence[tuple[str, int, int]], usable: int) -> str:
    """Bars of one scale with one line; what is over it is marked in words too."""
    most = max(usable, *(needed for _, needed, _ in rows)) * 1.02
    cells = [
        (name, bar(_parts(needed, usable), most, usable), number(needed), _against(needed, usable))
        for name, needed, usable in rows
    ]
    return table(
        f"GiB needed; the line is what is usable: {number(usable)}", ("When", "", "GiB", "Against it"), cells, "chart"
    )


def _parts(needed: int, usable: int) -> Iterator[Piece]:
    """What is below the line, and what is over it."""
    yield Piece("rest", 0, min(needed, usable))
    yield Piece("over", usable, max(needed, usable))


def _against(needed: int, usable: int) -> str:
    """How far over the line, or under it."""
    return f"{number(abs(needed - usable))} {'over' if needed > usable else 'free'}"


def options(report: Report, answer: Answer) -> str:
    """The ways out next to the run as it is, then each with its command and its steps."""
    ways = [option for option in answer.options if option.command is not None]
    if not ways or report.estimate is None or report.estimate.verdict == "unknown":
        return ""
    rows = [("as it is", "", *_figures(report.estimate, answer.tokens_per_second))]
    rows += [_row(option, report.estimate) for option in answer.options]
    heads = ("Way out", "edits", "GiB", "host GiB", "tokens/s")
    filled = [place for place in range(len(heads)) if place < 1 or any(cells[place] for cells in rows)]
    shown = [[cells[place] for place in filled] for cells in (heads, *rows)]
    found = table("GiB of one GPU, tokens a second of all", shown[0], shown[1:])
    return tag("h3", "Options") + tag("div", found, "scroll") + "".join(map(_way, ways))


def _row(option: Option, now: Estimate) -> tuple[str, ...]:
    """One option in figures."""
    name = f"{tag('b', option.letter)} {plain(option.title)}"
    if option.command is None or not (option.starts or option.recommended):
        best = option.best_of(now)
        return f"{name}: no way" + (f", {number(best)} GiB at best" if best is not None else ""), "", "", "", ""
    return name, str(option.changes or ""), *_figures(option.end, option.tokens_per_second)


def _figures(end: Estimate | None, tokens: float | None) -> tuple[str, str, str]:
    """GiB of a GPU, GiB of a host, tokens a second."""
    memory = number(end.needed.high) if end is not None else ""
    host = number(end.host_peak) if end is not None and end.host_peak >= GIB else ""
    return memory, host, f"{tokens:,.0f}" if tokens is not None else ""


def _way(option: Option) -> str:
    """What to type for an option, and what that writes; unfolded where it is the one to take."""
    training = tag("span", SAFETY[option.training == "same"], f"badge {option.training}")
    edits = f", {counted(option.changes, 'edit')}" if option.changes else ""
    head = f"{tag('b', option.letter)} {plain(option.title)}{edits} {training}"
    steps = tag("ol", "".join(map(step, option.steps))) if option.steps else ""
    command = tag("pre", plain(option.command or ""))
    written = folded("What it writes", diff(option.diff)) if option.diff else ""
    return folded(head, command + steps + written, unfolded=option.recommended)


def step(step: AnswerStep) -> str:
    """One edit: its figures, its reason, its cost."""
    said = [f"<b>{plain(step.title)}</b> {tag('small', plain(', '.join(_changes(step))))}"]
    said += [prose(step.because)] if step.because else []
    said += [f"Cost: {prose(step.cost)}"] if step.cost else []
    said += [f"Install first: {plain(', '.join(step.requires))}"] if step.requires else []
    said += [prose(words) for words in step.help]
    return tag("li", "<br>".join(said))


def _changes(step: AnswerStep) -> Iterator[str]:
    """What a step does to the GPU and to the time."""
    if step.memory is not None:
        yield f"{arrow(*map(number, step.memory))} GiB"
    if step.host is not None and abs(step.host[1] - step.host[0]) >= GIB // 10:
        yield f"host {arrow(*map(number, step.host))}"
    if step.seconds is not None:
        yield f"{arrow(*map(seconds, step.seconds))} s a step"
