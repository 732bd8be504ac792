"""The table of a comment: a config a row, what it needs, how fast it is, what to do; and the sentence above it."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from advisor.engine.answer import Option
from advisor.engine.finding import Report
from advisor.memory.ledger import Estimate
from advisor.report.findings_text import brief
from advisor.report.fingerprint import repository_path
from advisor.report.markdown_text import code, escaped
from advisor.report.wording import VERBS, VERDICT_RULES, State, arrow, counted, number, state
from advisor.speed import StepTime

CHECKOUTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
MARKS: Mapping[State, str] = {"stops": "❌", "does-not-fit": "❌", "tight": "⚠️", "unknown": "❔", "fits": "✅"}
"""What a config is, worst first, and how the eye finds it."""
NO_LONGER = ("no longer fits", "no longer fit")
REACHES = frozenset({"fits", "tight"})


def path_of(file: str) -> str:
    """A file as annotations name it: from the checkout, else from the working directory."""
    return repository_path(file, next((name for name in CHECKOUTS if os.environ.get(name)), ""))


def headline(rows: Sequence[Report]) -> str:
    """``2 of 3 changed configs no longer fit``, with the mark of the worst of them."""
    against = next((report.against for report in rows if report.against), None)
    noun = "changed config" if against else "config"
    states: list[State] = [state(report) for report in rows]
    if not rows:
        return "No config to compare"
    worst: State = next(name for name in MARKS if name in states)
    if len(rows) == 1:
        return f"{MARKS[worst]} {code(path_of(rows[0].file))} {_verb(worst, rows, 1)}"
    found = Counter(states)
    if found["fits"] == len(rows):
        return f"{MARKS[worst]} All {counted(len(rows), noun)} fit"
    said = [f"{found[name]} {_verb(name, rows, found[name])}" for name in MARKS if found[name] and name != "fits"]
    lead, _, rest = said[0].partition(" ")
    return f"{MARKS[worst]} " + ", ".join([f"{lead} of {counted(len(rows), noun)} {rest}", *said[1:]])


def _verb(name: State, rows: Sequence[Report], count: int) -> str:
    """What the configs in a state do, in the singular or plural."""
    fell = name == "does-not-fit" and all(_did_fit(report) for report in rows if state(report) == name)
    one, many = NO_LONGER if fell else VERBS[name]
    return one if count == 1 else many


def _did_fit(report: Report) -> bool:
    """Whether the base of a run fits."""
    then = report.against.report if report.against else None
    return then is not None and then.verdict in REACHES


def table(rows: Sequence[Report]) -> str:
    """One row a config."""
    if any(report.against for report in rows):
        heads = ["config", "GPUs", "GiB before → after", "difference", "tokens/s", "fix"]
        lines = ["| :-- | :-- | --: | --: | --: | :-- |"]
    else:
        heads = ["config", "GPUs", "GiB", "tokens/s", "fix"]
        lines = ["| :-- | :-- | --: | --: | :-- |"]
    lines = [f"| {' | '.join(heads)} |", *lines]
    for report in rows:
        cells = [f"{MARKS[state(report)]} {code(path_of(report.file))}", escaped(report.hardware or ""), memory(report)]
        cells += [difference(report)] if len(heads) > 5 else []
        cells += [speed(report), fix(report)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def memory(report: Report) -> str:
    """``30.6 → **105.3** of 38.9``: the high end of what one GPU needs, before and now, of what it has."""
    found, then = report.estimate, _then(report)
    if found is None:
        return "does not start" if state(report) == "stops" else "no verdict"
    now = number(found.needed.high)
    now = now if report.verdict == "fits" else f"**{now}**"
    new = " (new)" if report.against and report.against.report is None else ""
    before = f"{number(then.needed.high)} → " if then is not None else ""
    unknown = " are counted" if report.verdict == "unknown" else ""
    return f"{before}{now} of {number(found.usable)}{unknown}{new}{escaped(found.grounds)}{_host(found)}"


def _host(found: Estimate) -> str:
    """What the host lacks, where it is the host that does not suffice."""
    if not found.lacks_host or found.host_usable is None:
        return ""
    return f"; **host {number(found.host_peak)}** of {number(found.host_usable)}"


def difference(report: Report) -> str:
    """``▲ 74.7``, in GiB."""
    found, then = report.estimate, _then(report)
    if found is None or then is None:
        return ""
    more = found.needed.high - then.needed.high
    shown = number(abs(more))
    return "" if float(shown) == 0 else f"{'▲' if more > 0 else '▼'} {shown}"


def _then(report: Report) -> Estimate | None:
    """What the base needs."""
    return report.against.report.estimate if report.against and report.against.report else None


def speed(report: Report) -> str:
    """``3,013 → 4,305 (+43%)``: tokens a second of all GPUs."""
    now = report.answer.tokens_per_second if report.answer else None
    if now is None:
        return ""
    then, time = report.against.report if report.against else None, report.time
    if then is None or not isinstance(then.time, StepTime) or not isinstance(time, StepTime):
        return f"{now:,.0f}"
    before = now * (then.time.tokens / then.time.expected) / (time.tokens / time.expected)
    shown = arrow(f"{before:,.0f}", f"{now:,.0f}").replace("->", "→")
    return shown if before == now or "→" not in shown else f"{shown} ({now / before - 1:+.0%})".replace("-", "−")


def fix(report: Report) -> str:
    """``**2 edits, same training**: 32.8 GiB``, or what else there is to say."""
    answer = report.answer
    chosen = answer.recommended if answer else None
    if chosen is not None:
        return "" if chosen.letter == "F" else option(chosen)
    if state(report) == "stops":
        stop = next(f for f in report.findings if f.level == "error" and f.rule not in VERDICT_RULES)
        line = f" (line {stop.place.line})" if stop.place.line else ""
        return escaped(f"{brief(stop.message)}{line}")
    return escaped(answer.action) if answer else ""


def option(chosen: Option) -> str:
    """What an option takes and where it ends."""
    edits = counted(chosen.changes, "edit")
    same = chosen.training == "same"
    words = f"**{edits}, same training**" if same else f"{edits}, **changes training**"
    return words if chosen.end is None else f"{words}: {number(chosen.end.needed.high)} GiB{chosen.end.condition}"
