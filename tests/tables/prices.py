"""Offers of clouds -> ``advisor/hardware/prices.csv``: ``make prices OFFERS=offers.csv``.

Columns of the offers: ``key`` (a card, or a name that leaves its form open), ``cloud``, ``kind``,
``usd_per_gpu_hour``, ``date``; a row with something in ``why_not_counted`` does not count. Only what clouds ask for
their own machines does (``on-demand``): not spot, and not markets of third parties. Of a cloud the newest price
counts, the lowest of that day.
"""

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median

from advisor.hardware.catalogue import find_gpu, known_gpus
from advisor.hardware.prices import PRICES, Price

HEAD = ("gpu", "usd", "clouds", "oldest", "newest")
LEAST_CLOUDS = 2
"""A price that one cloud alone asks is no card's."""


def cards_of(key: str) -> tuple[str, ...]:
    """The ids that a key means: itself, or all forms of the model and size that it names."""
    known = known_gpus()
    if key in known:
        return (key,)
    found = find_gpu(key)
    if found is None:
        return ()
    stem = found.id.rpartition("-")[0]
    return tuple(id_ for id_ in known if id_ == found.id or id_.startswith(f"{stem}-"))


def counted(rows: Iterable[Mapping[str, str]]) -> dict[str, dict[str, tuple[str, float]]]:
    """By card and cloud the day and the price that count."""
    found: dict[str, dict[str, tuple[str, float]]] = {}
    for row in rows:
        if row["kind"] != "on-demand" or row.get("why_not_counted"):
            continue
        offer = (row["date"], float(row["usd_per_gpu_hour"]))
        for card in cards_of(row["key"]):
            clouds = found.setdefault(card, {})
            clouds[row["cloud"]] = min(clouds.get(row["cloud"], offer), offer, key=lambda one: (_later(one[0]), one[1]))
    return found


def _later(day: str) -> int:
    """A key by which later days come first."""
    return -int(day.replace("-", ""))


def table(rows: Iterable[Mapping[str, str]]) -> dict[str, Price]:
    """The price of each card that two clouds sell, in the order of the catalogue."""
    found = counted(rows)
    return {card: _price_of(found[card]) for card in known_gpus() if len(found.get(card, {})) >= LEAST_CLOUDS}


def _price_of(clouds: Mapping[str, tuple[str, float]]) -> Price:
    days = sorted(day for day, _ in clouds.values())
    return Price(round(median(price for _, price in clouds.values()), 2), len(clouds), days[0], days[-1])


def lines(prices: Mapping[str, Price]) -> Iterator[tuple[object, ...]]:
    """The table with its head."""
    yield HEAD
    for card, price in prices.items():
        yield card, f"{price.amount:.2f}", price.clouds, price.oldest, price.newest


def main(offers: str) -> None:
    """Rewrites the table."""
    with Path(offers).open(encoding="utf-8", newline="") as file:
        prices = table(csv.DictReader(file))
    with PRICES.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines(prices))


if __name__ == "__main__":
    main(*sys.argv[1:])
