"""The answer at the head of a page: headline and action, before and after, the options with what to type."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from advisor.engine.answer import Answer, AnswerStep, Option
from advisor.engine.finding import Report
from advisor.memory.ledger import PARTS, Estimate
from advisor.record import record
from advisor.report.html_markup import Piece, bar, diff, folded, legend, plain, prose, scrolling, table, tag
from advisor.report.wording import SAFETY, arrow, counted, number
from advisor.util import GIB, seconds


def banner(report: Report, answer: Answer) -> str:
    """Does it fit, and what to do; with the command of the option to take."""
    role = report.verdict if answer.starts else "does-not-fit"
    chosen = answer.recommended
    said = [tag("p", tag("b", plain(answer.headline)))]
    said += [tag("p", prose(words)) for words in (answer.rate, answer.action, answer.assumed) if words]
    said += [tag("p", tag("code", plain(chosen.command)))] if chosen is not None and chosen.command else []
    return tag("div", "".join(said), f"verdict {role}")


def before_and_after(report: Report, answer: Answer) -> str:
    """What one GPU needs now, and after the option to take, against the card; of the host where that is short."""
    found, chosen = report.estimate, answer.recommended
    if found is None or not answer.starts or found.verdict == "unknown":
        return ""
    if answer.reason is not None and answer.reason.where == "host" and found.host_usable:
        host = Needed("host", found.host_peak, found.host_usable)
        return _bars([host]) + _bars([of_gpu("GPU", found)])
    after = chosen.end if chosen is not None and chosen.letter != "C" else None
    return _bars([of_gpu("now", found), *([of_gpu("after", after)] if after is not None else [])])


@record
class Needed:
    """What is needed of what there is, in bytes, with the parts that are known."""

    name: str
    needed: int
    usable: int
    parts: Mapping[str, int] = field(default_factory=dict[str, int])

    def pieces(self) -> Iterator[Piece]:
        """The parts, then what is kept for rounding and fragmentation; what is over the line, hatched."""
        end = 0
        for part, bytes_ in (*self.parts.items(), ("rest", max(0, self.needed - sum(self.parts.values())))):
            start, end = end, end + bytes_
            yield Piece(part, start, end)
        yield Piece("over", self.usable, max(self.needed, self.usable))


def of_gpu(name: str, found: Estimate) -> Needed:
    """The high end of a GPU's need."""
    return Needed(name, found.needed.high, found.usable, {part: found.parts[part] for part in PARTS})


def _bars(rows: Sequence[Needed]) -> str:
    """Bars of one scale with one line, each colour named below; what is over the line is said in words too."""
    usable = rows[0].usable
    most = max(usable, *(row.needed for row in rows)) * 1.02
    cells = [(row.name, bar(row.pieces(), most, usable), number(row.needed), _against(row)) for row in rows]
    named = [part for part in PARTS if any(row.parts.get(part) for row in rows)]
    reserve = "needed" if not named else "room for rounding and fragmentation"
    roles = [*((part, part) for part in named), ("rest", reserve)]
    over = [("over", "over the line")] if any(row.needed > usable for row in rows) else []
    words = [*roles, *over, ("limit", f"the line: {number(usable)} usable")]
    return table("GiB needed", ("When", "Needed", "GiB", "Against the line"), cells, "chart") + legend(words)


def _against(row: Needed) -> str:
    """How far over the line, or under it."""
    return f"{number(abs(row.needed - row.usable))} {'over' if row.needed > row.usable else 'free'}"


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
    return tag("h3", "Options") + scrolling(found) + "".join(map(_way, ways))


def _row(option: Option, now: Estimate) -> tuple[str, ...]:
    """One option in figures."""
    title = option.title if option.starts or option.command is None else f"{option.title}, once corrected"
    name = f"{tag('b', option.letter)} {plain(title)}"
    if option.command is None:
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
