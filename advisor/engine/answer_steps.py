"""Finding -> a step of an option, as a person reads it; what a run takes, where that is priced."""

from collections.abc import Iterable, Sequence

from advisor.engine.answer import AnswerStep, Stop
from advisor.engine.clauses import cause_of, remedy_of
from advisor.engine.finding import OF_HOST, PLANNED, Finding, Fix
from advisor.run import Run
from advisor.speed import StepTime, step_time
from advisor.util import regex

UNREADABLE = "unreadable-value"
SUBJECT = regex(r"^`[^`]*`")
MEANT = regex(r"^is (`[^`]*`) meant\?$")
OF_IT = ("remove it", "set it to ")
OF_MEMORY = frozenset({*PLANNED.values(), OF_HOST})
"""The rules that say the verdict; any other error stops the run."""


def stops_in(findings: Sequence[Finding]) -> list[Finding]:
    """The errors that stop the run: a value that cannot be read before what follows from it, then by line."""
    found = [each for each in findings if each.level == "error" and each.rule not in OF_MEMORY]
    return sorted(found, key=lambda each: (each.rule != UNREADABLE, each.place.line))


def stop_of(finding: Finding) -> Stop:
    """An error that stops the run, as an option keeps it."""
    return Stop(finding.rule, finding.message, finding.place.words, remedy_of(finding))


def step_of(finding: Finding) -> AnswerStep:
    """A step of the plan, or a lint fix, as a person reads it."""
    fix = finding.fix or Fix(safe=True, edits=())  # an edit that was made where no text shows it
    remedy = remedy_of(finding)
    cause = cause_of(finding.message).removesuffix(f": {remedy}")
    return AnswerStep(
        finding.rule,
        title_of(finding),
        finding.because or (f"{cause}." if remedy != finding.title else _first_sentence(finding.why)),
        finding.price or _first_sentence(finding.cost),
        fix.safe,
        finding.requires,
        memory=fix.needed,
        host=fix.host,
        seconds=fix.seconds,
        why=finding.why,
        whole_cost=finding.cost,
        source=finding.source,
        diff=fix.diff,
        help=finding.help,
        heading=finding.title,
        tidies=fix.needed is None and finding.level != "error" and fix.safe,
    )


def title_of(finding: Finding) -> str:
    """What an edit does: a step's label, else the remedy, with the key that it is about where it says "it"."""
    if finding.label:
        return finding.label
    remedy, key = remedy_of(finding), SUBJECT.match(finding.message)
    if meant := MEANT.match(remedy):
        return f"write {meant[1]}"
    if key is not None and remedy.startswith(OF_IT):
        remedy = remedy.replace(" it", f" {key[0]}", 1)
    return remedy or finding.message


def steps_of(findings: Iterable[Finding]) -> tuple[AnswerStep, ...]:
    """What is done, as a person reads it: what tidies up, and changes no training, comes last."""
    return tuple(sorted(map(step_of, findings), key=lambda step: step.tidies))


def _first_sentence(text: str) -> str:
    """Up to the first period that ends one."""
    first, mark, _ = " ".join(text.split()).partition(". ")
    return first + "." if mark else first


def seconds_of(run: Run) -> float | None:
    """Of one optimizer step, where that is priced."""
    found = step_time(run)
    return found.expected if isinstance(found, StepTime) else None


def tokens_per_second(run: Run) -> float | None:
    """Of all GPUs."""
    found = step_time(run)
    return found.tokens * run.world_size / found.expected if isinstance(found, StepTime) else None
