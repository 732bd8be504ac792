"""Findings as small answers: GiB with one decimal, seconds, and nothing that the agent did not ask for."""

from collections.abc import Mapping
from typing import Any

from advisor.engine.answer import Option
from advisor.engine.finding import Finding, Report
from advisor.engine.fix import Fixed, fixed
from advisor.engine.fix_report import report_after
from advisor.memory.ledger import Estimate, Range
from advisor.report.cards import Offer, notes_of
from advisor.report.offers import offers_of
from advisor.report.wording import offers, remarks, room, steps
from advisor.session import CheckedRun
from advisor.speed import StepTime
from advisor.util import GIB

from .asked import Asked

MOST_FINDINGS = 40
TRAINING: Mapping[bool, str] = {True: "same", False: "changes"}
Answer = dict[str, Any]


def head(report: Report) -> Answer:
    """What every answer about a run says first; without what is not known."""
    found, time = report.estimate, report.time
    said = {
        "verdict": report.verdict,
        "hardware": report.hardware,
        "run": report.summary,
        **(needs(found) if found else {}),
        "step_seconds": [round(time.low, 2), round(time.high, 2)] if isinstance(time, StepTime) else None,
    }
    return {key: value for key, value in said.items() if value is not None}


def needs(found: Estimate) -> Answer:
    """Memory of one GPU, and of each host where something is offloaded."""
    said: Answer = {"needed_gib": span(found.needed), "usable_gib": gib(found.usable)}
    return said | ({"host_gib_per_node": gib(found.host_peak)} if found.host_peak >= GIB else {})


def checked(report: Report) -> Answer:
    """``check``: findings and the steps of the plan."""
    found = remarks(report)
    said = head(report) | ways_out(report) | {"findings": [finding(each) for each in found[:MOST_FINDINGS]]}
    if len(found) > MOST_FINDINGS:
        said["more_findings"] = len(found) - MOST_FINDINGS
    if plan := steps(report):
        said["plan"] = [step(each) for each in plan]
    if given := [*room(report), *offers(report)]:
        said["with_room_left"] = [step(each) for each in given]
    return said


def ways_out(report: Report) -> Answer:
    """The answer: two sentences, and the options with what each writes by its command."""
    answer = report.answer
    if answer is None:
        return {}
    options = [option(each) for each in answer.options if each.command is not None]
    return {"headline": answer.headline, "action": answer.action} | ({"options": options} if options else {})


def option(way: Option) -> Answer:
    """One way out: where it ends, and what to type."""
    said = {
        "id": way.letter,
        "title": way.title,
        "training": way.training,
        "fits": way.fits,
        "recommended": way.recommended or None,
        "edits": way.changes,
        "needed_gib": gib(way.end.needed.high) if way.end is not None else None,
        "tokens_per_second": round(way.tokens_per_second) if way.tokens_per_second is not None else None,
        "flags": way.flags,
    }
    return {key: value for key, value in said.items() if value is not None}


def finding(found: Finding) -> Answer:
    """One finding at its line; ``edit`` says whether there is one, and whether it changes the training."""
    said: Answer = {"rule": found.rule, "level": found.level, "file": found.place.file, "line": found.place.line}
    said["message"] = found.message
    if found.help:
        said["help"] = list(found.help)
    if found.fix:
        said["edit"] = TRAINING[found.fix.safe]
    return said


def step(found: Finding) -> Answer:
    """One step: what it does, and the GiB that are needed after it."""
    fix = found.fix
    said: Answer = {"rule": found.rule, "does": found.title or found.message}
    if fix is not None:
        said |= {"needed_gib": gib(fix.after) if fix.after is not None else None, "training": TRAINING[fix.safe]}
    return said | ({"cost": found.cost} if found.cost else {})


def estimated(found: CheckedRun, *, ledger: bool) -> Answer:
    """``estimate``: phases and parts; with ``ledger`` every term of the peak."""
    said, memory = head(found.report), found.report.estimate
    if memory is None:
        return said | {"why": [each.message for each in found.report.findings if each.rule == "unknown-model"]}
    said |= {
        "peak_phase": memory.peak_phase,
        "phases_gib": {phase.name: gib(phase.bytes) for phase in memory.phases},
        "parts_gib": {part: gib(bytes_) for part, bytes_ in memory.parts.items()},
        "reserved_gib": span(memory.reserved_peak),
    }
    if ledger:
        terms = sorted(memory.peak.terms, key=lambda term: -term.bytes)
        said["terms"] = [[term.name, round(term.bytes / GIB, 2), term.formula, term.source] for term in terms]
    return said


def planned(one: Asked, *, unsafe: bool, text: bool) -> Answer:
    """``plan``: what ``--fix`` would write, as one diff; with ``text`` also the files."""
    found = one.checked_run(speed=False)
    result = fixed(found.opened, found.options, unsafe=unsafe)
    after = report_after(result, found.options)
    said: Answer = {"before": head(found.report), "after": head(after)}
    said["steps"] = [step(each) for each in result.done]
    said["diff"] = result.diff()
    if left := [finding(each) for each in remarks(after) if each.level == "error"]:
        said["still_wrong"] = left
    if text:
        said["files"] = contents(result)
    return said


def contents(result: Fixed) -> dict[str, str]:
    """The new text of each file."""
    return {file: content.decode() for file, content in result.files().items()}


def cards(one: Asked, tokens: float | None, price: float | None) -> Answer:
    """``hardware``: cards that would do, best first."""
    found = one.checked_run(speed=False)
    offers = offers_of(found.run, one.session, tokens, price)
    return {"run": found.report.summary, "cards": [card(offer) for offer in offers], "notes": list(notes_of(offers))}


def card(offer: Offer) -> Answer:
    """One of them; ``gpus`` is what the other tools take."""
    row, rate = offer.row, offer.row.tokens_per_second
    said = {
        "gpus": row.hardware.spec,
        "needed_gib": gib(row.estimate.needed.high),
        "usable_gib": gib(row.estimate.usable),
        "host_gib_per_node": gib(row.estimate.host_peak) if row.estimate.host_peak >= GIB else None,
        "steps": list(row.steps) or None,
        "training": TRAINING[not row.changes_training] if row.steps else None,
        "tokens_per_second": round(rate) if rate is not None else None,
        "hours": rounded(offer.hours),
        "cost": rounded(offer.cost),
        "currency": "USD" if offer.cost is not None and offer.price and offer.price.is_shipped else None,
        "is": list(offer.anchors) or None,
        "yours": offer.owned or None,
    }
    return {key: value for key, value in said.items() if value is not None}


def rounded(value: float | None) -> float | None:
    """One decimal."""
    return None if value is None else round(value, 1)


def gib(bytes_: int) -> float:
    """GiB with one decimal."""
    return round(bytes_ / GIB, 1)


def span(value: Range) -> list[float]:
    """From low to high."""
    return [gib(value.low), gib(value.high)]
