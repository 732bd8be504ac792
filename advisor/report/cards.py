"""The table of cards that would do, on the screen, as markdown and as JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from advisor.engine.cards import Row
from advisor.hardware.prices import Price, dates_of
from advisor.record import record, replace
from advisor.report.style import Style
from advisor.report.wording import number as in_gib
from advisor.util import counted

HEADS = ("GPUs", "GiB", "host GiB", "steps", "tokens/s", "hours", "GPU-hours", "cost", "is")
GPUS, MEMORY, HOST, STEPS, SPEED, HOURS, GPU_HOURS, COST, NAMED = range(len(HEADS))
WORDS = frozenset({GPUS, STEPS, NAMED})
"""Columns that are not numbers."""
LEAVES_FIRST = (GPU_HOURS, HOURS, HOST, SPEED)
"""Columns that a narrow screen does without, in this order."""
OTHER_TRAINING = ", other training"
AS_WRITTEN = "as written"
SHORT = {AS_WRITTEN: "-"}
FEW = 6
MUCH = 1000
"""Costs from here on have no cents."""


@record(eq=False)
class Offer:
    """A row with what the whole run would take: hours of the wall clock, and their price."""

    row: Row
    hours: float | None
    price: Price | None
    worth: float | None
    """What it is ranked by, less is better: what the run costs; None where that is not known."""
    owned: bool = False
    anchors: tuple[str, ...] = ()
    """What it is of all: the cheapest, the fastest, the smallest."""

    @property
    def gpu_hours(self) -> float | None:
        """Hours of all cards together."""
        return None if self.hours is None else self.hours * self.row.hardware.world_size

    @property
    def cost(self) -> float | None:
        """At the price that was stated, else in USD at that of the table."""
        return None if self.gpu_hours is None or self.price is None else self.gpu_hours * self.price.amount

    @property
    def size(self) -> int:
        """Memory of all its cards."""
        return self.row.hardware.world_size * self.row.hardware.gpu.total_bytes


@record(eq=False)
class Offers(Sequence[Offer]):
    """What is shown, best first, and what is not."""

    shown: tuple[Offer, ...] = ()
    tokens: float | None = None
    """Of the whole run, where nobody said how many; None where somebody did."""
    more: int = 0
    """GPUs that would work, too."""
    changing: int = 0
    """Of these, the ones on which only another training fits."""
    untried: int = 0
    """Cards for which no plan was made."""

    def __len__(self) -> int:
        return len(self.shown)

    @overload
    def __getitem__(self, index: int) -> Offer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Offer, ...]: ...
    def __getitem__(self, index: int | slice) -> Offer | tuple[Offer, ...]:
        return self.shown[index]


def ranked(offers: Iterable[Offer]) -> list[Offer]:
    """The owned cards first, then by cost, what has none last; same training before other."""

    def place(offer: Offer) -> tuple[bool, bool, bool, float, int]:
        return not offer.owned, offer.row.changes_training, offer.worth is None, offer.worth or 0.0, offer.size

    return sorted(offers, key=place)


def anchored(offers: Sequence[Offer]) -> list[Offer]:
    """The same, with the cheapest, the fastest and the smallest named: of those with a price and the same training."""
    able = [offer for offer in offers if offer.cost is not None and not offer.row.changes_training]
    firm = [offer for offer in able if offer.price is not None and not offer.price.is_weak]
    best = {
        "cheapest": min(firm, key=lambda offer: offer.cost or 0.0, default=None),
        "fastest": max(able, key=lambda offer: offer.row.tokens_per_second or 0.0, default=None),
        "smallest": min(able, key=lambda offer: (offer.size, offer.cost or 0.0), default=None),
    }
    if len(able) < 2:
        return list(offers)
    return [replace(offer, anchors=tuple(word for word, one in best.items() if one is offer)) for offer in offers]


def cells(offer: Offer) -> tuple[str, ...]:
    """One row as texts; nothing where nothing is known."""
    row = offer.row
    needs = f"{in_gib(row.estimate.needed.high)} of {in_gib(row.estimate.usable)}"
    training = OTHER_TRAINING if row.changes_training else ""
    return (
        row.hardware.title,
        needs,
        in_gib(row.estimate.host_peak) if row.estimate.condition else "",
        f"{len(row.steps)}{training}" if row.steps else AS_WRITTEN,
        number(row.tokens_per_second, 0),
        number(offer.hours, 1),
        number(offer.gpu_hours, 0),
        money(offer.price, offer.cost),
        ", ".join((*(["yours"] if offer.owned else []), *offer.anchors)),
    )


def money(price: Price | None, cost: float | None) -> str:
    """A cost with two decimals, a large one without: ``$4.56``, ``~$1,021``; without a currency at a stated price."""
    if price is None or cost is None:
        return ""
    weak, currency = "~" * price.is_weak, "$" * price.is_shipped
    return f"{weak}{currency}{cost:,.{2 if cost < MUCH else 0}f}"


def entries(offers: Sequence[Offer]) -> list[tuple[str, ...]]:
    """The table as texts, its heads first."""
    return [HEADS, *map(cells, offers)]


def number(value: float | None, digits: int) -> str:
    """With thousands apart."""
    return "" if value is None else f"{value:,.{digits}f}"


def text(rows: Sequence[tuple[str, ...]], notes: Sequence[str], style: Style) -> str:
    """The table of ``entries`` in columns that the screen holds, those without any entry left out."""
    if any(row[STEPS].endswith(OTHER_TRAINING) for row in rows):
        notes = ["* the training is another one", *notes]
    rows = [tuple(SHORT.get(cell, cell.replace(OTHER_TRAINING, "*")) for cell in row) for row in rows]
    shown = [place for place in range(len(HEADS)) if any(row[place] for row in rows[1:])]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADS))]
    for place in LEAVES_FIRST:
        if sum(widths[one] + 2 for one in shown) - 2 > style.width and place in shown:
            shown.remove(place)
    if sum(widths[one] + 2 for one in shown) - 2 > style.width:
        rows = [(row[GPUS], row[MEMORY].partition(" of ")[0], *row[HOST:]) for row in rows]
        widths[MEMORY] = max(len(row[MEMORY]) for row in rows)
    lines = ["  ".join(_aligned(row[place], widths[place], place) for place in shown).rstrip() for row in rows]
    said = [line for note in notes for line in style.prose(note, "note: ", "note")]
    return "\n".join([style.paint(lines[0], "strong"), *lines[1:], *([""] if said else []), *said])


def _aligned(text: str, width: int, place: int) -> str:
    """Words to the left, numbers to the right."""
    return text.ljust(width) if place in WORDS else text.rjust(width)


def cheapest_words(offers: Offers) -> str:
    """``Cheapest that works: 1x RTX 4090, after 2 edits, $4.56 for 100M tokens.``: of those that are owned, if any."""
    best = next((offer for offer in offers if offer.owned or "cheapest" in offer.anchors), None)
    if best is None or best.row.changes_training:
        return ""
    lead = "Of yours" if best.owned else "Cheapest that works"
    edits = counted(len(best.row.steps), "edit")
    cost = f"{money(best.price, best.cost)}{_for_tokens(offers)}" if best.cost is not None else ""
    words = [f"after {edits}" if best.row.steps else "", cost]
    return f"{lead}: {', '.join(filter(None, (best.row.hardware.title, *words)))}."


def _for_tokens(offers: Offers) -> str:
    """`` for 100M tokens``, where nobody said how many there are."""
    return f" for {offers.tokens / 1e6:g}M tokens" if offers.tokens is not None else ""


def caption_of(offers: Offers) -> str:
    """What the costs are, in a line."""
    dates, weak = _dates_of(offers), any(offer.price is not None and offer.price.is_weak for offer in offers)
    of_two = ", ~ of two clouds alone" if weak else ""
    return f"cost{_for_tokens(offers)} in US dollars, at public prices of {dates}{of_two}" if dates else ""


def few(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """As many rows of ``entries`` as stand next to other things, those with a name among them."""
    heads, *cards = rows
    others = [row for row in cards if not row[NAMED]][: max(0, FEW - sum(bool(row[NAMED]) for row in cards))]
    return [heads, *(row for row in cards if row[NAMED] or row in others)]


def markdown(offers: Sequence[Offer], notes: Sequence[str]) -> str:
    """The same as a table of GitHub's."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    lines += [f"| {' | '.join(cells(offer))} |" for offer in offers]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)]).rstrip()


def as_json(file: str, offers: Offers) -> str:
    """The same for programs; null where nothing is known."""
    dates = _dates_of(offers)
    said = {
        "version": 1,
        "file": file,
        "hardware": list(map(entry, offers)),
        "tokens_assumed": offers.tokens,
        "currency": "USD" if dates else None,
        "prices_read": dates or None,
        "more": offers.more,
        "more_changing_training": offers.changing,
        "untried": offers.untried,
    }
    return json.dumps(said, indent=2)


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
        "price": offer.price and offer.price.amount,
        "price_clouds": offer.price.clouds or None if offer.price is not None else None,
        "price_is_weak": offer.price is not None and offer.price.is_weak,
        "owned": offer.owned,
        "anchors": list(offer.anchors),
    }


def _dates_of(offers: Sequence[Offer]) -> str:
    """When the prices were read that count here; empty where all of them were stated."""
    return dates_of([offer.price for offer in offers if offer.price is not None and offer.cost is not None])


def _captions_of(offers: Offers) -> Iterator[str]:
    """Of what hours and costs are, whence the prices, and what is left out."""
    if offers.tokens is not None and any(offer.hours is not None for offer in offers):
        yield f"hours and cost are of {offers.tokens / 1e6:g}M tokens (--tokens N)"
    if dates := _dates_of(offers):
        yield (
            f"cost in US dollars (USD), at the medians of what clouds asked on demand, read {dates}"
            " (--price, --prices FILE)"
        )
    if any(offer.price is not None and offer.price.is_weak and offer.cost is not None for offer in offers):
        yield "~ the price of two clouds alone"
    if offers.more or offers.untried:
        changing = f", {offers.changing} of them only if the training changes" if offers.changing else ""
        parts = [f"{offers.more} more{changing}"] if offers.more else []
        parts += [f"{offers.untried} not tried with other settings"] if offers.untried else []
        yield f"{', and '.join(parts)}: --all"


def notes_of(offers: Offers) -> Iterator[str]:
    """What the table is of, and what it leaves open."""
    yield from _captions_of(offers)
    yield from doubts_of(offers)


def doubts_of(offers: Offers) -> Iterator[str]:
    """What is taken for granted, or is rough."""
    yield from dict.fromkeys(offer.row.hardware.gpu.roughly for offer in offers if offer.row.hardware.gpu.approximate)
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
