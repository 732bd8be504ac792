"""What was found, as small answers: GiB with one decimal, seconds, and nothing that the agent did not ask for."""

from typing import Any

from advisor.engine.answer import Letter
from advisor.engine.finding import Finding
from advisor.engine.fix import fixed
from advisor.engine.fix_report import report_after
from advisor.hardware.prices import dates_of
from advisor.record import replace
from advisor.report.agent import TRAINING, finding, gib, head, host_gib, known, span
from advisor.report.cards import Offer, doubts_of
from advisor.report.offers import offers_of
from advisor.report.wording import remarks
from advisor.session import CheckedRun
from advisor.util import GIB

from .asked import Asked

Answer = dict[str, Any]


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
        said["terms"] = [
            {"name": term.name, "gib": round(term.bytes / GIB, 2), "formula": term.formula, "source": term.source}
            for term in sorted(memory.peak.terms, key=lambda term: -term.bytes)
        ]
    return said


def planned(one: Asked, option: Letter, *, text: bool) -> Answer:
    """``plan``: what the flags of an option would write, as one diff; with ``text`` also the files."""
    faster = option == "F"
    found = one.checked_run(speed=faster)
    way = found.report.answer.option(option) if found.report.answer is not None else None
    unsafe = option == "B" or (way is not None and way.training == "changes")
    options = replace(found.options, faster=faster)
    result = fixed(found.opened, options, unsafe=unsafe)
    after = report_after(result, options)
    said: Answer = {"before": head(found.report), "after": head(after)}
    said["steps"] = [_step(each) for each in result.done]
    said["diff"] = result.diff()
    if left := [finding(each, after.file) for each in remarks(after) if each.level == "error"]:
        said["still_wrong"] = left
    if text:
        said["files"] = result.texts()
    return said


def _step(found: Finding) -> Answer:
    """One step: what it does, and the GiB that are needed after it."""
    fix = found.fix
    after = fix.needed[1] if fix is not None and fix.needed is not None else None
    said = {
        "rule": found.rule,
        "does": found.label or found.title or found.message,
        "needed_gib": gib(after) if after is not None else None,
        "training": TRAINING[fix.safe] if fix is not None else None,
        "cost": found.price or None,
        "install": list(found.requires) or None,
    }
    return known(said)


def cards(one: Asked, tokens: float | None, price: float | None, names: str | None) -> Answer:
    """``hardware``: cards that would do, owned ones first, then by cost."""
    found = one.checked_run(speed=False)
    offers = offers_of(found.run, one.session, tokens, price, names)
    dates = dates_of([offer.price for offer in offers if offer.price is not None])
    said = {
        "run": found.report.summary,
        "tokens": offers.tokens,
        "currency": "USD" if dates else None,
        "prices_read": dates or None,
        "cards": [card(offer) for offer in offers],
        "more": offers.more or None,
        "doubts": list(doubts_of(offers)) or None,
    }
    return known(said)


def card(offer: Offer) -> Answer:
    """One of them; ``gpus`` is what the other tools take."""
    row, rate, price = offer.row, offer.row.tokens_per_second, offer.price
    said = {
        "gpus": row.hardware.spec,
        "needed_gib": gib(row.estimate.needed.high),
        "usable_gib": gib(row.estimate.usable),
        "host_gib_per_node": host_gib(row.estimate),
        "steps": list(row.steps) or None,
        "training": TRAINING[not row.changes_training] if row.steps else None,
        "tokens_per_second": round(rate) if rate is not None else None,
        "hours": rounded(offer.hours),
        "price_per_gpu_hour": price.amount if price is not None else None,
        "cost": rounded(offer.cost),
        "price_is_weak": True if price is not None and price.is_weak else None,
        "best": list(offer.anchors) or None,
        "owned": offer.owned or None,
    }
    return known(said)


def rounded(value: float | None) -> float | None:
    """One decimal."""
    return None if value is None else round(value, 1)
