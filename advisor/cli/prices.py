"""Prices of GPU-hours, as a user states them: a TOML file of cards and numbers, instead of the table that ships."""

from collections.abc import Mapping
from pathlib import Path

from advisor.errors import InputError
from advisor.hardware import Gpu, gpu_named
from advisor.settings.toml import Source, parse_toml
from advisor.util import MAX_BYTES, read_start

REMEDY = 'write for example `"a100-80gb" = 1.89`, one line a card'


def read_prices(path: str, own: Mapping[str, Gpu]) -> dict[str, float]:
    """The price of an hour of each card, by the catalogue's id. ``InputError`` with file, line and remedy."""
    try:
        text = read_start(path, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path, remedy=REMEDY) from error
    source = Source(path, Path(path).parent, text, ())
    return dict(price_of(source, name, price, own) for name, price in parse_toml(source, REMEDY).items())


def price_of(source: Source, name: str, price: object, own: Mapping[str, Gpu]) -> tuple[str, float]:
    """One line: the card's id, and its price."""
    line = source.line_of((name,))
    if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < float("inf"):
        raise InputError(f"`{name}` is `{price}`, not a price", source.shown, line, remedy=REMEDY)
    try:
        return gpu_named(name.lower(), own).id, float(price)
    except InputError as error:
        raise InputError(error.message, source.shown, line, remedy=error.remedy) from None
