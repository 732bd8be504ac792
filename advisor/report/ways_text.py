"""The screen of ``new``: what fits, the three ways, which and why, what was seen, what was written, what comes next."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.hardware.prices import Price
from advisor.report.cards import money
from advisor.report.style import Style
from advisor.report.table import Row, table
from advisor.report.wording import number
from advisor.util import gib, printable

if TYPE_CHECKING:
    from advisor.new import Way, Ways

NOT_TAKEN = {"would change training": "not taken"}
"""Words of rungs that mean something else where nothing is trained yet."""
MOST_NOTES = 3
MUCH = 100
"""Hours from here on have no decimals."""


def ways_text(found: "Ways", style: Style) -> str:
    """Everything but what was written."""
    blocks = [_headline(found, style), _table(found, style), [*_choice(found, style)], [*_seen(found, style)]]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def written_text(found: "Ways", way: "Way", style: Style) -> str:
    """What was written, and what to type next."""
    config = next(iter(way.files))
    lines = style.prose(", ".join(map(printable, way.files)), "Written: ", "strong")
    if found.start.seen.rows is None:
        path = found.start.seen.entry["path"]
        lines += style.prose(f"put your rows into {path}, or its path into `datasets`.", "First:   ", "strong")
    lines += [f"Needs:   {command}" for command in way.requires]
    return "\n".join(
        [*lines, "Next:    " + f"axolotl preprocess {config}", f"         advisor launch -- axolotl train {config}"]
    )


def _headline(found: "Ways", style: Style) -> list[str]:
    """``LoRA fits on 1x RTX 4090: 18.8 of 23.5 GiB a GPU.``"""
    where, way = found.start.hardware.title, found.chosen
    name = printable(found.start.request.model)
    if way is None or way.estimate is None:
        return style.prose(f"{name} on {where}: {found.why}")
    needed, usable = way.estimate.needed.high, way.estimate.usable
    method = "DPO with " if found.start.seen.paired else ""
    kind = f"{method}all weights fit" if way.training == "full" else f"{method}{way.title} fits"
    words = f"{name}: {kind} on {where}, {number(needed)} of {gib(usable)} on each GPU."
    return [style.paint(line, "fits") for line in style.prose(words)]


def _table(found: "Ways", style: Style) -> list[str]:
    """The three ways with their figures."""
    timed = any(way.hours is not None for way in found.ways)
    priced = any(way.cost is not None for way in found.ways)
    heads = ["way", "GiB", "tokens/s", *(["time"] if timed else []), *(["cost"] if priced else [])]
    rows = [_row(way, found.price, timed=timed, priced=priced) for way in found.ways]
    if not any(way.fits for way in found.ways):
        return [line for row in rows for line in style.prose(row.cells[0], "  ")]
    return table(heads, rows, style)


def _row(way: "Way", price: Price | None, *, timed: bool, priced: bool) -> Row:
    """One way; of one that is none, why."""
    mark = "->" if way.recommended else ""
    columns = 2 + timed + priced
    if not way.fits:
        return Row(mark, (f"{way.title}: {way.why_not}{at_best(way)}", *("" for _ in range(columns))))
    title = way.title + (", part in host memory" if way.offloads else "")
    memory = number(way.estimate.needed.high) if way.estimate else "-"
    speed = f"{way.tokens_per_second:,.0f}" if way.tokens_per_second is not None else "-"
    cells = [title, memory, speed]
    cells += [time_words(way.hours)] if timed else []
    cells += [money(price, way.cost) or "-"] if priced else []
    return Row(mark, tuple(cells), strong=way.recommended)


def at_best(way: "Way") -> str:
    """What is needed where it does not fit."""
    if way.why_not != "does not fit" or way.estimate is None:
        return ""
    return f", {number(way.estimate.needed.high)} of {gib(way.estimate.usable)}"


def time_words(hours: float | None) -> str:
    """``8 min``, ``2.7 h``, ``120 h``."""
    if hours is None:
        return "-"
    if hours < 1:
        return f"{max(1, round(hours * 60))} min"
    return f"{hours:,.{0 if hours >= MUCH else 1}f} h"


def _choice(found: "Ways", style: Style) -> Iterator[str]:
    """Which and why, the flowchart, whence prices and tokens are."""
    way = found.chosen
    if way is not None:
        yield from style.prose(found.why, "Taken: ", "strong", indent=2)
        yield from _flowchart(found, style)
        for note in way.notes[:MOST_NOTES]:
            yield from style.prose(note.message, "note: ", "note", indent=2)
    yield from _terms(found, style)


def _flowchart(found: "Ways", style: Style) -> list[str]:
    """``Flowchart: mixed precision done; LoRA taken; offload not needed.``"""
    groups: dict[str, list[str]] = {}
    for rung in found.rungs:
        detail = f" ({rung.detail})" if rung.word == "impossible" and rung.detail else ""
        word = NOT_TAKEN.get(rung.word, rung.word) + detail
        groups.setdefault(word, []).append(rung.name)
    said = "; ".join(f"{', '.join(names)} {word}" for word, names in groups.items())
    return style.prose(f"{said}.", "Flowchart: ", indent=2) if said else []


def _terms(found: "Ways", style: Style) -> list[str]:
    """For how many tokens, at which price."""
    tokens, price = found.start.tokens, found.price
    said = [f"Times are of {amount(tokens)} tokens in all epochs."] if tokens is not None else []
    if price is not None and any(way.cost is not None for way in found.ways):
        said.append(price_words(price))
    return style.prose(" ".join(said)) if said else []


def amount(tokens: float) -> str:
    """``20M``, ``1.5B``."""
    if tokens >= 1e9:
        return f"{tokens / 1e9:,.3g}B"
    return f"{tokens / 1e6:,.3g}M" if tokens >= 1e5 else f"{tokens:,.0f}"


def price_words(price: Price) -> str:
    """What a cost is made of."""
    if not price.is_shipped:
        return f"Cost at {price.amount:g} a GPU-hour."
    return f"Cost in USD at {price.amount:g} a GPU-hour, {price.origin}."


def _seen(found: "Ways", style: Style) -> Iterator[str]:
    """What the rows are."""
    seen = found.start.seen
    if seen.rows is not None:
        yield from style.prose(seen.why, "Data: ", "strong", indent=2)
    for line in seen.said:
        yield from style.prose(line, "  ", indent=2)
