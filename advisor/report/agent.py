"""The answer for agents: one line of JSON a run, GiB with one decimal, and nothing that was not asked."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from advisor.engine.answer import Answer, AnswerStep, Option
from advisor.engine.finding import Finding, Report
from advisor.memory.ledger import Estimate, Range
from advisor.report.as_json import ESCAPED
from advisor.report.style import Style
from advisor.report.wording import VERDICT_RULES, remarks
from advisor.speed import StepTime
from advisor.util import GIB

MOST_FINDINGS = 40
MOST_NOTES = 3
TOLD = VERDICT_RULES | {"hardware-assumed"}
"""Findings whose words an answer has itself."""
TRAINING: Mapping[bool, str] = {True: "same", False: "changes"}
Said = dict[str, Any]


def render(reports: Sequence[Report], _style: Style) -> str:
    """All runs."""
    return "".join(pieces(reports))


def pieces(reports: Iterable[Report]) -> Iterator[str]:
    """The same, a run at a time."""
    yield '{"version":1,"runs":['
    for place, report in enumerate(reports):
        yield f"{',' if place else ''}\n{compact({'file': report.file, **checked(report)})}"
    yield "\n]}"


def compact(value: object) -> str:
    """JSON without spaces, in UTF-8; what could steer a terminal is escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(ESCAPED)


def checked(report: Report) -> Said:
    """Verdict and figures, the options, and what is wrong; steps are those of the option to take."""
    answer = report.answer
    found = [each for each in remarks(report) if answer is None or each.rule not in TOLD]
    loud = [each for each in found if each.level != "note"]
    notes = [each for each in found if each.level == "note"]
    shown = [*loud[:MOST_FINDINGS], *notes[:MOST_NOTES]]
    said = head(report) | (answered(answer) if answer is not None else {})
    said["findings"] = [finding(each, report.file) for each in shown]
    return said | ({"more_findings": len(found) - len(shown)} if len(found) > len(shown) else {})


def head(report: Report) -> Said:
    """What every answer about a run says first; without what is not known."""
    found, time = report.estimate, report.time
    step = [round(time.low, 2), round(time.high, 2)] if isinstance(time, StepTime) else None
    said = {"verdict": report.verdict, "hardware": report.hardware, "run": report.summary}
    return known(said | (needs(found) if found else {}) | {"step_seconds": step})


def needs(found: Estimate) -> Said:
    """Memory of one GPU, and of each host where something is offloaded."""
    said = {
        "needed_gib": span(found.needed),
        "usable_gib": gib(found.usable),
        "host_gib_per_node": host_gib(found),
    }
    return known(said)


def host_gib(found: Estimate) -> float | None:
    """Memory of each host; None below one GiB, as where nothing is offloaded."""
    return gib(found.host_peak) if found.host_peak >= GIB else None


def answered(answer: Answer) -> Said:
    """Two sentences, and the options with what each writes by its flags."""
    options = [_option(each) for each in answer.options if each.command is not None and each.letter != "C"]
    room = answer.room
    said = {
        "starts": None if answer.starts else False,
        "headline": answer.headline,
        "action": answer.action,
        "needs_gib": gib(answer.needs) if answer.needs is not None else None,
        "options": options or None,
        "larger_micro_batch": room.micro_batch_size if room is not None else None,
        "hints": [words for words in (answer.rate, *answer.hints, answer.assumed) if words] or None,
    }
    return known(said)


def _option(way: Option) -> Said:
    """One way out: where it ends, and what to type."""
    end, speed = way.end, way.tokens_per_second
    said = {
        "id": way.letter,
        "title": way.title if way.letter != "A" else None,
        "training": way.training,
        "fits": way.fits,
        "recommended": way.recommended or None,
        "edits": way.changes,
        "needed_gib": gib(end.needed.high) if end is not None else None,
        "host_gib_per_node": host_gib(end) if end is not None else None,
        "tokens_per_second": round(speed) if speed is not None else None,
        "flags": way.flags,
        "steps": [_step(each) for each in way.steps] if way.recommended else None,
    }
    return known(said)


def _step(value: AnswerStep) -> Said:
    """One edit, and the GiB that are needed after it."""
    said = {
        "rule": value.rule,
        "does": value.title,
        "needed_gib": gib(value.memory[1]) if value.memory is not None else None,
        "cost": value.cost or None,
        "install": list(value.requires) or None,
    }
    return known(said)


def finding(found: Finding, own: str) -> Said:
    """One finding at its line, ``file`` being another than its own; ``edit``: whether it has one, and of which sort."""
    said = {
        "rule": found.rule,
        "level": found.level,
        "file": found.place.file if found.place.file != own else None,
        "line": found.place.line,
        "message": found.message,
        "help": list(found.help) or None,
        "edit": TRAINING[found.fix.safe] if found.fix else None,
    }
    return known(said)


def known(said: Mapping[str, Any]) -> Said:
    """The same without what is not known."""
    return {key: value for key, value in said.items() if value is not None}


def gib(bytes_: int) -> float:
    """GiB with one decimal."""
    return round(bytes_ / GIB, 1)


def span(value: Range) -> list[float]:
    """From low to high."""
    return [gib(value.low), gib(value.high)]
