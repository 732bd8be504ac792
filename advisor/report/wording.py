"""The words and numbers that more than one format says."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from advisor.engine.finding import LEVELS, OF_HOST, PLANNED, Finding, Fix, Place, Report, Rung, WholePlan
from advisor.engine.rule import Level
from advisor.memory.ledger import Estimate, Range, Verdict
from advisor.record import record
from advisor.util import counted, number, path_shown, seconds

VERDICTS: Mapping[Verdict, str] = {
    "fits": "fits",
    "tight": "near the limit",
    "does-not-fit": "does not fit",
    "unknown": "unknown",
}
ON: Mapping[Verdict, str] = {
    "fits": "fits",
    "tight": "near the limit on",
    "does-not-fit": "does not fit",
    "unknown": "memory unknown on",
}
"""The verdict as a verb whose object is the hardware."""
VERDICT_RULES = frozenset({*PLANNED.values(), OF_HOST})
SAFETY: Mapping[bool, str] = {True: "same training", False: "changes what is trained"}
APPLICABILITY: Mapping[bool, str] = {True: "safe", False: "unsafe"}
State = Literal["stops", "does-not-fit", "tight", "unknown", "fits"]
VERBS: Mapping[State, tuple[str, str]] = {
    "stops": ("does not start", "do not start"),
    "does-not-fit": ("does not fit", "do not fit"),
    "tight": ("is near the limit", "are near the limit"),
    "unknown": ("has no verdict", "have no verdict"),
    "fits": ("fits", "fit"),
}
"""What a config in a state does, and what several do."""


def state(report: Report) -> State:
    """The verdict, unless an error that is not about memory stops the run."""
    stops = any(finding.level == "error" and finding.rule not in VERDICT_RULES for finding in report.findings)
    return "stops" if stops else report.verdict


def span(range_: Range) -> str:
    """``31.2 to 34.0``, in GiB."""
    return f"{number(range_.low)} to {number(range_.high)}"


def fill(estimate: Estimate) -> str:
    """What is needed of what is there: ``31.2 to 34.0 of 78.2 GiB``."""
    return f"{span(estimate.needed)} of {number(estimate.usable)} GiB"


def change(fix: Fix) -> str:
    """What an edit does to one GPU: ``90.7 -> 77.6 GiB per GPU: tight``; empty if that is unknown."""
    if fix.before is None or fix.after is None:
        return ""
    verdict = f": {VERDICTS[fix.verdict]}{fix.condition}" if fix.verdict else ""
    before, after = map(seconds, fix.seconds or (0.0, 0.0))
    time = f", {before} -> {after} s a step" if before != after else ""
    least, most = fix.needed or (fix.before, fix.after)
    return f"{number(least)} -> {number(most)} GiB per GPU{time}{verdict}"


def rung_lines(rungs: Sequence[Rung]) -> list[tuple[str, str]]:
    """Each rung of the user's flowchart with what became of it."""
    return [(rung.name, rung.word + (f" ({rung.detail})" if rung.detail else "")) for rung in rungs]


def position(place: Place) -> str:
    """``file:line:column``; a finding about the whole file stands on its first line."""
    return f"{path_shown(place.file)}:{max(1, place.line)}:{max(1, place.column)}"


def is_offer(finding: Finding) -> bool:
    """Whether this is a suggestion for speed: memory given back by choice, which ``--fix`` leaves alone."""
    return finding.level == "note" and finding.step is None and finding.fix is not None and bool(change(finding.fix))


def steps(report: Report) -> list[Finding]:
    """The steps of the plan, in order."""
    return sorted((f for f in report.findings if f.step is not None), key=lambda finding: finding.step or 0)


def offers(report: Report) -> list[Finding]:
    """The suggestions for speed."""
    return [finding for finding in report.findings if is_offer(finding) and finding.sequence is None]


def room(report: Report) -> list[Finding]:
    """The steps with which the room that is left is used."""
    return [finding for finding in report.findings if finding.sequence == "room"]


def room_words(whole: WholePlan) -> str:
    """``41.0 -> 73.2 GiB per GPU, 9.80 -> 6.10 s a step (-38%)``."""
    words = f"{number(whole.before)} -> {number(whole.after)} GiB per GPU"
    if whole.seconds is None:
        return words
    before, after = whole.seconds
    return f"{words}, {seconds(before)} -> {seconds(after)} s a step ({after / before - 1:+.0%})"


def remarks(report: Report) -> list[Finding]:
    """What is neither step nor offer, most severe first; the verdict comes last, for the plan follows it."""
    plain = [finding for finding in report.findings if finding.step is None and not is_offer(finding)]
    return sorted(plain, key=lambda f: (f.rule in VERDICT_RULES, *severity(f)))


def severity(finding: Finding) -> tuple[int, str, int, int]:
    """Sorts by level, then by place."""
    return LEVELS.index(finding.level), finding.place.file, finding.place.line, finding.place.column


def findings_of(reports: Sequence[Report]) -> Iterator[tuple[Report, Finding]]:
    """All findings with their reports, most severe first, steps of a plan in their order."""
    places: dict[Level, list[int]] = {level: [] for level in LEVELS}
    for place, report in enumerate(reports):
        for level in LEVELS:
            if any(finding.level == level for finding in report.findings):
                places[level].append(place)
    for level in LEVELS:
        for report in (reports[place] for place in places[level]):
            found = (*remarks(report), *steps(report), *room(report), *offers(report))
            yield from ((report, finding) for finding in found if finding.level == level)


def status(report: Report) -> str:
    """One line for a file: ``a.yaml: fits 8x A100-80GB SXM: 31.2 to 34.0 of 78.2 GiB``."""
    file = path_shown(report.file)
    if report.hardware is None:
        return f"{file}: " + ("no findings" if not report.findings else "memory unknown")
    line, found = f"{file}: {ON[report.verdict]} {report.hardware}", report.estimate
    if found is None:
        return line
    return f"{line}{found.grounds}: {fill(found)}" + (" are counted" if report.verdict == "unknown" else "")


def second(report: Report) -> str:
    """``rows of 1024 tokens: fits, 12.0 to 13.1 of 78.2 GiB``, or why there is no such estimate; empty if unasked."""
    asked = report.second
    if asked is None:
        return ""
    lead = f"rows of {asked.length} tokens: "
    if asked.estimate is None:
        return lead + asked.reason
    verdict = VERDICTS[asked.estimate.verdict]
    return f"{lead}{verdict}{asked.estimate.condition}, {fill(asked.estimate)}; the verdict does not rest on this"


def totals(reports: Sequence[Report]) -> str:
    """``1 error, 2 notes. 3 edits with --fix, 1 more with --unsafe-fixes (changes training).``"""
    found = Counter(finding.level for report in reports for finding in report.findings)
    levels = [counted(found[level], level) for level in LEVELS if found[level]]
    lead = f"{counted(len(reports), 'file')}: " if len(reports) > 1 else ""
    said = [lead + (", ".join(levels) or "no findings") + "."]
    fixed = sum(report.fixed for report in reports)
    if fixed:
        said.append(f"{fixed} fixed.")
    if edits := edit_counts(finding for report in reports for finding in report.findings):
        said.append(edits + ".")
    return " ".join(said)


def edit_counts(findings: Iterable[Finding]) -> str:
    """How many edits ``--fix`` would write, and how many more ``--unsafe-fixes``."""
    fixes = [f.fix.safe for f in findings if f.fix and not f.fix.by_choice and not is_offer(f)]
    return edit_words(sum(fixes), len(fixes) - sum(fixes))


def edit_words(safe: int, unsafe: int) -> str:
    """``3 edits with --fix, 1 more with --unsafe-fixes (changes training)``."""
    said = [f"{counted(safe, 'edit')} with --fix"] if safe else []
    if unsafe:
        count = f"{unsafe} more" if safe else counted(unsafe, "edit")
        said.append(f"{count} with {'' if safe else '--fix '}--unsafe-fixes (changes training)")
    return ", ".join(said)


@record
class StepRow:
    """A row of the table of steps: the step, bytes that one GPU needs after it, verdict, price.

    ``step`` is `as written` for the first; ``safe`` is False from the first step on that changes what is trained.
    """

    step: str
    bytes: int
    verdict: "Verdict"
    cost: str = ""
    safe: bool = True


def step_rows(report: "Report") -> tuple[StepRow, ...]:
    """The run as written, then each step of the plan on top of those before it; empty without a plan."""
    plan = [(finding, finding.fix) for finding in steps(report) if finding.fix]
    if report.estimate is None or not plan:
        return ()
    rows = [StepRow("as written", report.estimate.needed.low, report.estimate.verdict)]
    for finding, fix in plan:
        last = rows[-1]
        after = last.bytes if fix.after is None else fix.after
        safe = last.safe and fix.safe
        price = f"{finding.cost.rstrip('.')}{fix.condition}" if fix.condition else finding.cost
        rows.append(StepRow(finding.rule, after, fix.verdict or last.verdict, price, safe))
    return tuple(rows)


def compared(report: Report) -> str:
    """``61.0 -> 79.2 GiB of 78.2, fits -> does not fit, 4.10 -> 3.20 s a step``; empty without a comparison."""
    if report.against is None:
        return ""
    from advisor.speed import StepTime

    then = report.against.report
    if then is None:
        return "new"
    was, now = then.estimate, report.estimate
    if was is None and now is None:
        return "no figures"
    said = [arrow(VERDICTS[then.verdict], VERDICTS[report.verdict])]
    if was is not None and now is not None:
        said.insert(0, f"{arrow(number(was.needed.high), number(now.needed.high))} GiB of {number(now.usable)}")
    if isinstance(then.time, StepTime) and isinstance(report.time, StepTime):
        said.append(f"{arrow(seconds(then.time.expected), seconds(report.time.expected))} s a step")
    return ", ".join(said)


def arrow(before: str, after: str) -> str:
    """``61.0 -> 79.2``, or one of them where they are the same."""
    return after if before == after else f"{before} -> {after}"


def known_words(report: Report) -> str:
    """How much is found that was found before; empty for nothing."""
    against = report.against
    if against is None or not against.known:
        return ""
    return f"{counted(len(against.known), 'finding')} of {against.revision} not repeated"
