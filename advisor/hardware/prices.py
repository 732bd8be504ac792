"""What a GPU-hour costs where nobody says: ``prices.csv``, medians of public on-demand prices in USD.

``make prices OFFERS=file.csv`` rewrites the table; CONTRIBUTING.md says from what.
"""

import csv
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path

from advisor.record import record

PRICES = Path(__file__).with_name("prices.csv")
FEW_CLOUDS = 3
"""Prices of fewer clouds are weak: of one card they differ by two to seven times."""
OLD_DAYS = 180


@record
class Price:
    """Of one GPU for an hour: as it was stated, or in USD the median of what some clouds ask."""

    amount: float
    clouds: int = 0
    """How many clouds it is the median of; 0 where the user states it."""
    oldest: str = ""
    newest: str = ""

    @property
    def is_shipped(self) -> bool:
        """Whether it is the table's, in USD."""
        return self.clouds > 0

    @property
    def is_weak(self) -> bool:
        """Whether few clouds sell the card."""
        return 0 < self.clouds < FEW_CLOUDS

    @property
    def origin(self) -> str:
        """Of the table's: ``the median of 6 clouds, read 2026-05-24``."""
        return f"the median of {self.clouds} clouds, read {dates_of([self])}"


@record(eq=False)
class Prices:
    """Prices of cards: one for all, or by card, as stated; where neither is, those of the table."""

    one: float | None = None
    by_card: Mapping[str, float] | None = None

    def of(self, gpu: str) -> Price | None:
        """The price of a card by its id, None without one."""
        if self.by_card is not None and gpu in self.by_card:
            return Price(self.by_card[gpu])
        if self.one is not None:
            return Price(self.one)
        return shipped_prices().get(gpu) if self.by_card is None else None


@lru_cache(maxsize=1)
def shipped_prices() -> Mapping[str, Price]:
    """The table, by the catalogue's id."""
    with PRICES.open(encoding="utf-8", newline="") as file:
        return {
            row["gpu"]: Price(float(row["usd"]), int(row["clouds"]), row["oldest"], row["newest"])
            for row in csv.DictReader(file)
        }


def hourly_words(gpu: str, count: int) -> str:
    """``$2.08 an hour, the median of 6 clouds, read 2026-05-24``: of cards by the table, empty where it has none."""
    price = shipped_prices().get(gpu)
    return "" if price is None else f"${price.amount * count:.2f} an hour, {price.origin}"


def dates_of(prices: list[Price]) -> str:
    """When the table's prices were read, and how long ago that is once it is long: empty without any of them."""
    shipped = [price for price in prices if price.is_shipped]
    if not shipped:
        return ""
    oldest, newest = min(price.oldest for price in shipped), max(price.newest for price in shipped)
    days = (date.today() - date.fromisoformat(newest)).days
    age = f", {days} days old" if days >= OLD_DAYS else ""
    return f"{oldest} to {newest}{age}" if oldest != newest else f"{newest}{age}"
