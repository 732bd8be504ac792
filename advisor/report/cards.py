"""The table of cards that would do, on the screen, as markdown and as JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence

from advisor.engine.cards import Row
from advisor.record import record
from advisor.report.style import Style
from advisor.report.wording import number as in_gib

HEADS = ("GPUs", "GiB", "host GiB", "steps", "tokens/s", "hours", "GPU-hours", "cost")
WORDS = frozenset({0, 3})
"""Columns that are not numbers."""


@record(eq=False)
class Offer:
    """A row with what the whole run would take: hours of the wall clock, and their price."""

    row: Row
    hours: float | None
    price: float | None
    worth: float | None
    """What it is ranked by, less is better: GPU-hours of the run, or GPU-seconds of a token, times the price."""

    @property
    def gpu_hours(self) -> float | None:
        """Hours of all cards together."""
        return None if self.hours is None else self.hours * self.row.hardware.world_size

    @property
    def cost(self) -> float | None:
        """At the price that was stated."""
        return None if self.gpu_hours is None or self.price is None else self.gpu_hours * self.price


def ranked(offers: Iterable[Offer]) -> list[Offer]:
    """By cost where there are prices, else by GPU-hours, what has no time last; same training before other."""
    found = list(offers)
    priced = any(offer.price is not None for offer in found)

    def place(offer: Offer) -> tuple[bool, bool, float, int]:
        unknown = offer.worth is None or (priced and offer.price is None)
        bytes_ = offer.row.hardware.world_size * offer.row.hardware.gpu.total_bytes
        return offer.row.changes_training, unknown, offer.worth or 0.0, bytes_

    return sorted(found, key=place)


def cells(offer: Offer) -> tuple[str, ...]:
    """One row as texts; nothing where nothing is known."""
    row = offer.row
    needs = f"{in_gib(row.estimate.needed.high)} of {in_gib(row.estimate.usable)}"
    training = ", other training" if row.changes_training else ""
    steps = f"{len(row.steps)}{training}" if row.steps else "as written"
    return (
        row.hardware.title,
        needs,
        in_gib(row.estimate.host_peak) if row.estimate.condition else "",
        steps,
        number(row.tokens_per_second, 0),
        number(offer.hours, 1),
        number(offer.gpu_hours, 0),
        number(offer.cost, 2),
    )


def entries(offers: Sequence[Offer]) -> list[tuple[str, ...]]:
    """The table as texts, its heads first."""
    return [HEADS, *map(cells, offers)]


def number(value: float | None, digits: int) -> str:
    """With thousands apart."""
    return "" if value is None else f"{value:,.{digits}f}"


def text(offers: Sequence[Offer], notes: Sequence[str], style: Style) -> str:
    """The table in columns, those without any entry left out."""
    rows = entries(offers)
    shown = [place for place in range(len(HEADS)) if any(row[place] for row in rows[1:])]
    widths = {place: max(len(row[place]) for row in rows) for place in shown}
    lines = ["  ".join(_aligned(row[place], widths[place], place) for place in shown).rstrip() for row in rows]
    said = [line for note in notes for line in style.prose(note, "note: ", "note")]
    return "\n".join([style.paint(lines[0], "strong"), *lines[1:], *([""] if said else []), *said])


def _aligned(text: str, width: int, place: int) -> str:
    """Words to the left, numbers to the right."""
    return text.ljust(width) if place in WORDS else text.rjust(width)


def markdown(offers: Sequence[Offer], notes: Sequence[str]) -> str:
    """The same as a table of GitHub's."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    lines += [f"| {' | '.join(cells(offer))} |" for offer in offers]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)]).rstrip()


def as_json(file: str, offers: Sequence[Offer]) -> str:
    """The same for programs; null where nothing is known."""
    return json.dumps({"version": 1, "file": file, "hardware": list(map(entry, offers))}, indent=2)


def entry(offer: Offer) -> dict[str, object]:
    """One row."""
    row = offer.row
    return {
        "hardware": row.hardware.title,
        "spec": row.hardware.spec,
        "needed": {"low": row.estimate.needed.low, "high": row.estimate.needed.high},
        "usable": row.estimate.usable,
        "host_peak": row.estimate.host_peak,
        "steps": list(row.steps),
        "changes_training": row.changes_training,
        "tokens_per_second": row.tokens_per_second,
        "hours": offer.hours,
        "gpu_hours": offer.gpu_hours,
        "cost": offer.cost,
    }


def notes_of(offers: Sequence[Offer]) -> Iterator[str]:
    """What the table leaves open."""
    priced = [offer.row.hardware for offer in offers if offer.row.time is not None]
    if assumed := [hardware.gpu.title for hardware in priced if hardware.link_assumed]:
        yield f"linked by the card's own PCIe, as nothing else is stated: {', '.join(dict.fromkeys(assumed))}"
    if any(offer.row.time is None and offer.row.hardware.nodes > 1 for offer in offers):
        yield 'several nodes have no time: state their network, `--gpus "2n8x h100 net=400Gb/s"`'
    rough = [offer.row.hardware.gpu.title for offer in offers if offer.row.time is not None and offer.row.time.doubts]
    if rough:
        yield f"rough times, as few figures are published of such runs: {', '.join(dict.fromkeys(rough))}"
    if any(offer.row.estimate.condition for offer in offers):
        yield "something is offloaded: hosts are taken as they are common with the cards, where none is stated"
