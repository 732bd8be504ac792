"""The answer on the screen: headline and action, bars, the table of options, the flowchart, the steps, the diff."""

from collections import Counter
from collections.abc import Iterator, Sequence

from advisor.engine.answer import NO_MASTERS, Answer, AnswerStep, Option, Rung
from advisor.engine.finding import Report
from advisor.memory.ledger import Estimate
from advisor.record import replace
from advisor.report.snippet import diff_lines
from advisor.report.style import Style
from advisor.report.table import Row, table
from advisor.report.wording import arrow, number, span
from advisor.util import GIB, path_shown, seconds

WORDS_OF_VERDICT = ("Fits", "Near the limit", "Does not fit", "Does not start", "No verdict", "Needs", "No GPUs stated")
"""How a headline begins, which is what is coloured."""
BAR_LEAD = 7
LEAST_BAR = 12
MUCH = 1.15
"""Times as fast: what was not taken and is less than that is told in JSON alone, unless it is much shorter."""
FEWER = 3
"""Times as few edits."""


def headline_lines(report: Report, answer: Answer, style: Style, *, lead: str = "") -> list[str]:
    """The two sentences: does it fit, and what to do."""
    word = next((word for word in WORDS_OF_VERDICT if answer.headline.startswith(word)), "")
    role = "does-not-fit" if not answer.starts else report.verdict
    cheapest = f" {report.cheapest}" if answer.needs is not None and report.cheapest else ""
    lines = style.prose(f"{answer.headline}{cheapest}", lead, indent=2)
    lines[0] = lines[0].replace(lead + word, lead + style.paint(word, role), 1)
    said = (answer.rate, answer.action, answer.assumed)
    return lines + [line for text in said if text for line in style.prose(text, indent=2)]


def outlook_lines(answer: Answer, style: Style) -> list[str]:
    """What else there is room for, and what the links take; as far as the answer says so."""
    room = (answer.room.text,) if answer.room is not None else ()
    return [line for text in (*room, *answer.hints) for line in style.prose(text, indent=2)]


def bars(report: Report, answer: Answer, style: Style) -> list[str]:
    """What is needed against what there is, now and after the option to take; of the host where that is short."""
    found, chosen = report.estimate, answer.recommended
    if found is None or not answer.starts or found.verdict == "unknown":
        return []
    after = chosen.end if chosen is not None and chosen.letter != "C" else None
    if answer.reason is not None and answer.reason.where == "host" and found.host_usable:
        rows = [("host", found.host_peak, found.host_usable), ("GPU", found.needed.high, found.usable)]
        return [line for name, needed, usable in rows for line in _bar(name, needed, usable, [], report, style)]
    ends = [end for end in (found, after) if end is not None]
    lines: list[str] = []
    for name, end in zip(("now", "after"), ends, strict=False):
        lines += _bar(name, end.needed.high, end.usable, ends, report, style)
    return lines


def _bar(name: str, needed: int, usable: int, ends: Sequence[Estimate], report: Report, style: Style) -> list[str]:
    """One bar with its number. All bars of a picture have one scale."""
    words = f" {number(needed)} of {number(usable)}"
    columns = min(style.width, 100) - BAR_LEAD - len(words) - 1
    if columns < LEAST_BAR:
        return [f"{name:<{BAR_LEAD}}{words.strip()}"]
    whole = max([needed, usable, *(end.needed.high for end in ends)])
    limit = min(max(1, round(columns * usable / whole)), columns - (whole > usable))
    inside = min(limit, round(columns * min(needed, usable) / whole))
    over = max(round(columns * needed / whole) - limit, 1) if needed > usable else 0
    full, free, excess, edge = ("█", "░", "▒", "│") if style.unicode else ("#", ".", "x", "|")
    role = "does-not-fit" if needed > usable else "fits"
    picture = style.paint(full * inside, report.verdict if needed > usable else role) + free * (limit - inside)
    return [f"{name:<{BAR_LEAD}}{picture}{edge}{style.paint(excess * over, 'does-not-fit')}{words}"]


def options_table(report: Report, answer: Answer, style: Style) -> list[str]:
    """The ways out next to the run as it is, with numbers in columns; empty where there is nothing to write."""
    ways = [option for option in answer.options if option.command is not None]
    if not ways or report.estimate is None or report.estimate.verdict == "unknown":
        return []
    host = any(end.host_peak >= GIB for end in (report.estimate, *(o.end for o in answer.options if o.end)))
    heads = ["way out", "edits", "GiB", *(["host"] if host else []), "tokens/s"]
    rows = [Row("", ("as it is", *_figures(None, report.estimate, answer.tokens_per_second, host)))]
    rows += [_option_row(option, report.estimate, host) for option in answer.options]
    return table(heads, rows, style)


def other_ways_lines(answer: Answer, style: Style) -> list[str]:
    """``F: ZeRO-3; no gradient checkpointing``: what the options change that are not told step by step."""
    lines: list[str] = []
    for option in answer.options:
        titles = [step.title for step in option.steps if not step.tidies]
        if option.command is not None and not option.recommended and option.letter != "C" and titles:
            lines += style.prose("; ".join(titles), f"{option.letter}: ", indent=3)
    return lines


def _option_row(option: Option, now: Estimate, host: bool) -> Row:
    """One option: its title, edits, end, and what to type."""
    says_so = option.training == "same" or option.command is None or option.title in {"changes training", NO_MASTERS}
    title = option.title if says_so else f"{option.title}: changes training"
    title += _near_limit(option)
    if not option.starts and option.command is not None:
        title += ", once corrected"
    elif option.command is None:
        best = option.best_of(now)
        reached = "no way: does not start" if not option.starts else "no way"
        reached += f": {number(best)} GiB at best" if best is not None else ""
        return Row(option.letter, (f"{title}: {reached}", *("" for _ in range(4 if host else 3))))
    figures = _figures(option.changes, option.end, option.tokens_per_second, host)
    return Row(option.letter, (title, *figures), option.flags, strong=option.recommended)


def _near_limit(option: Option) -> str:
    """What is short at the end of a way that may run out."""
    end = option.end
    if end is None or option.command is None or option.verdict != "tight":
        return ""
    if end.on_host == "tight":
        return f", needs up to {number(end.host_peak)} of {number(end.host_usable or 0)} GiB of host"
    return ", near the limit"


def _figures(changes: int | None, end: Estimate | None, tokens: float | None, host: bool) -> tuple[str, ...]:
    """Edits, GiB of a GPU, GiB of a host, tokens a second."""
    memory = number(end.needed.high) if end is not None else "-"
    of_host = number(end.host_peak) if end is not None and end.host_peak >= GIB else "-"
    speed = f"{tokens:,.0f}" if tokens is not None else "-"
    return "-" if not changes else str(changes), memory, *((of_host,) if host else ()), speed


def flowchart_lines(rungs: Sequence[Rung], answer: Answer, style: Style) -> list[str]:
    """``Flowchart: mixed precision done; ZeRO-2, ZeRO-3 taken; LoRA changes training (B).``"""
    if not rungs:
        return []
    groups: dict[str, list[str]] = {}
    for rung in rungs:
        groups.setdefault(_word_of(rung, answer), []).append(rung.name)
    said = "; ".join(f"{', '.join(names)} {word}" for word, names in groups.items())
    return style.prose(f"{said}.", "Flowchart: ", indent=2)


def _word_of(rung: Rung, answer: Answer) -> str:
    """A rung's word in a sentence, with its figure."""
    match rung.word:
        case "would change training":
            other = answer.option("B")
            rungs = other.rungs if other is not None and other.command else ()
            is_taken = any(each.name == rung.name and each.word == "taken" for each in rungs)
            return f"would change training{' (B)' if is_taken else ''}"
        case "slower here" if rung.detail:
            return f"slower here ({rung.detail})"
        case "impossible" if rung.detail:
            return f"impossible ({rung.detail})"
        case word:
            return word


def passed_over_lines(answer: Answer, style: Style) -> list[str]:
    """A way that was not taken though it is much faster or shorter than the one to take, or keeps more; why."""
    chosen = answer.recommended
    at = chosen.seconds if chosen is not None else None
    lines: list[str] = []
    for way in answer.not_taken:
        is_short = chosen is not None and way.edits is not None and FEWER * way.edits <= chosen.changes
        if way.keeps_more or is_short or (at and way.seconds and at > MUCH * way.seconds):
            room = f", {number(way.memory)} GiB" if way.memory else ""
            time = f", {seconds(way.seconds)} s a step in place of {seconds(at)}" if at and way.seconds else ""
            lines += style.prose(f"{way.title}{room}{time}; {way.because}.", "Not taken: ", indent=2)
    return lines


def step_lines(option: Option, style: Style, *, verbose: bool = False) -> list[str]:
    """Each step of an option under its letter."""
    lines = numbered(option.steps, style, verbose=verbose)
    return [style.paint(f"{option.letter}, step by step", "strong"), *lines] if lines else []


def numbered(steps: Sequence[AnswerStep], style: Style, *, verbose: bool = False) -> list[str]:
    """Each step: its title with before and after, then the reason and the cost in a line each."""
    lines: list[str] = []
    for count, same in enumerate(_entries(steps), 1):
        step, said = same[0], _said_of(same[0], verbose)
        if len(same) > 1:
            step, said = replace(step, title=f"{step.heading}: {len(same)} edits"), _said_of_all(same, verbose)
        lines += _title_lines(f"{count}. ", step, style)
        lines += [line for words in said for line in style.prose(words, "   ", indent=3)]
        if verbose and step.diff:
            lines += diff_lines(step.diff, style, "   ")
    return lines


def _entries(steps: Sequence[AnswerStep]) -> list[list[AnswerStep]]:
    """The steps, those of one rule that tidy up as one."""
    entries: dict[str, list[AnswerStep]] = {}
    for at, step in enumerate(steps):
        entries.setdefault(step.rule if step.tidies else f"{at}", []).append(step)
    return list(entries.values())


def _said_of_all(steps: Sequence[AnswerStep], verbose: bool) -> Iterator[str]:
    """Fixes of one rule: each in a line, with how often it is made."""
    for words, times in Counter(f"{step.because.rstrip('.')}; {step.title}" for step in steps).items():
        yield f"{words} ({times} times)" if times > 1 else words
    if verbose:
        yield from _said_of(steps[0], verbose)


def _title_lines(number_: str, step: AnswerStep, style: Style) -> list[str]:
    """``1. ZeRO-3      140.5 -> 123.7 GiB   19.2 -> 19.3 s a step``; in two lines where one is too narrow."""
    figures = ", ".join(_figures_of(step))
    title = f"{number_}{step.title}"
    if not figures:
        return style.prose(step.title, number_, indent=len(number_))
    room = style.width - len(figures) - 2
    if len(title) <= room:
        return [f"{style.paint(title, 'strong')}{' ' * (room - len(title) + 2)}{figures}"]
    return [*style.prose(step.title, number_, "strong", indent=len(number_)), *style.prose(figures, "   ", indent=3)]


def _figures_of(step: AnswerStep) -> Iterator[str]:
    """What a step does to the GPU, to the host, to the time."""
    if step.memory is not None:
        yield f"{arrow(*map(number, step.memory))} GiB"
    if step.host is not None and abs(step.host[1] - step.host[0]) >= GIB // 10:
        yield f"host {arrow(*map(number, step.host))}"
    if step.seconds is not None:
        yield f"{arrow(*map(seconds, step.seconds))} s a step"


def _said_of(step: AnswerStep, verbose: bool) -> Iterator[str]:
    """The reason and the cost in a line each; all that is known of them where that is asked."""
    if verbose:
        yield from (text for text in (f"why: {step.why}" if step.why else "",) if text)
        yield from (text for text in (f"cost: {step.whole_cost}" if step.whole_cost else "",) if text)
        yield f"source: {step.source}; rule {step.rule}"
    else:
        yield from (text for text in (step.because,) if text)
        yield from (text for text in (f"Cost: {step.cost}" if step.cost else "",) if text)
    if step.requires:
        yield f"Install first: {', '.join(step.requires)}"
    yield from step.help


def evidence_lines(report: Report, answer: Answer, style: Style) -> list[str]:
    """The range behind the one number, the peak, what parts and phases need, and each option's end."""
    found, lines = report.estimate, list[str]()
    if found is not None:
        lines += style.prose(
            f"{span(found.needed)} GiB, {number(found.usable)} usable; the peak is {found.peak_phase}",
            "Range: ",
            indent=2,
        )
        parts = ", ".join(f"{name} {number(size)}" for name, size in found.parts.items() if size)
        lines += style.prose(parts, "Memory: ", indent=2)
        phases = ", ".join(f"{phase.name} {number(phase.bytes)}" for phase in found.phases if phase.bytes)
        lines += style.prose(phases, "By phase: ", indent=2)
        lines += style.prose(_host_words(found), "Host: ", indent=2) if found.host_peak >= GIB else []
    for option in answer.options:
        if option.end is not None and option.command is not None:
            end = f"{span(option.end.needed)} of {number(option.end.usable)} GiB; {option.command}"
            lines += style.prose(end, f"{option.letter}: ", indent=3)
    return lines


def _host_words(found: Estimate) -> str:
    """``564.1 GiB a node, 320.0 pinned, which has 256.0: optimizer states 418.2, gradients 130.1``."""
    has = f", which has {number(found.host_usable)}" if found.host_usable is not None else ""
    terms = ", ".join(f"{term.name} {number(term.bytes)}" for term in found.host)
    return f"{number(found.host_peak)} GiB a node, {number(found.host_pinned)} pinned{has}: {terms}"


def skipped_lines(report: Report, style: Style) -> list[str]:
    """The steps of the flowchart that do not help, each with its reason."""
    if not report.skipped:
        return []
    lines = [style.paint("Not taken", "strong")]
    for skipped in report.skipped:
        lines += style.prose(skipped.reason, f"  {skipped.rule}: ", indent=4)
    return lines


def file_lead(report: Report) -> str:
    """``a.yaml: `` where several files are told."""
    return f"{path_shown(report.file)}: "
