"""Menus and sliders -> a config from a blank page, through ``advisor.new``."""

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from advisor.hardware.prices import Price
from advisor.new import Request, Way, Ways, drafted
from advisor.new import ways as all_ways
from advisor.new.methods import method_named
from advisor.record import replace
from advisor.report.cards import money
from advisor.report.html_markup import plain, prose, scrolling, table, tag
from advisor.report.ways_text import amount, at_best, price_words, time_words
from advisor.report.wording import number
from advisor.session import RunOptions

from .asking import CONFIG, MODEL


@contextmanager
def wanted(request: str) -> Generator[Request]:
    """What the menus say; a ``config.json`` of the page lies in a file meanwhile, where the advisor reads it."""
    said: dict[str, Any] = json.loads(request)
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, MODEL)
        if text := said["files"].get(MODEL, ""):
            own.write_text(text, encoding="utf-8")
        yield Request(
            model=said["model"],
            method=method_named(said["method"]),
            sequence_len=int(said["length"]),
            tokens=float(said["tokens"]),
            file=CONFIG,
            options=RunOptions(gpus=said["gpus"], model_config=str(own) if text else None, isolated=True),
        )


def draft(request: str) -> dict[str, Any]:
    """The files that the search begins with. ``InputError`` where something must be stated."""
    with wanted(request) as asked:
        return {"files": dict(drafted(asked, asked.wanted or "lora"))}


def ways(request: str) -> dict[str, Any]:
    """The three ways whatever the method, and the one to take. ``InputError`` where something must be stated."""
    with wanted(request) as asked:
        found = all_ways(asked if asked.method == "dpo" else replace(asked, method="auto"))
    files = {way.training: dict(way.files) for way in found.ways if way.fits}
    return {
        "html": ways_table(found),
        "files": files,
        "chosen": found.chosen.training if found.chosen is not None else None,
    }


def ways_table(found: Ways) -> str:
    """Full, LoRA and QLoRA with their figures and a button for each that fits."""
    heads = ("Way", "GiB", "tokens/s", "time", "cost", "")
    rows = [_way(way, found.price) for way in found.ways]
    tokens = found.start.tokens
    said = [found.why, f"Times are of {amount(tokens)} tokens." if tokens else ""]
    said += [price_words(found.price)] if found.price is not None else []
    name = plain(found.start.hardware.title)
    return scrolling(table(f"Ways on {name}", heads, rows)) + tag("p", prose(" ".join(said)), "small")


def _way(way: Way, price: Price | None) -> tuple[str, ...]:
    """One of them."""
    title = way.title + (", part in host memory" if way.offloads else "")
    if not way.fits:
        return f"{plain(title)}: {prose(way.why_not + at_best(way))}", "", "", "", "", ""
    memory = number(way.estimate.needed.high) if way.estimate is not None else ""
    speed = f"{way.tokens_per_second:,.0f}" if way.tokens_per_second is not None else ""
    use = f'<button type="button" data-kind="{way.training}">Use</button>'
    name = tag("b", plain(title)) if way.recommended else plain(title)
    return name, memory, speed, time_words(way.hours), money(price, way.cost), use
