"""Amounts as people state them: tokens, and the price of a GPU-hour."""

import re
from math import inf

from advisor.errors import InputError
from advisor.util import regex

TOKENS = regex(r"(\d+(?:\.\d+)?)\s*([kmbt]?)", re.IGNORECASE)
THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


def parse_tokens(text: str) -> float:
    """Tokens as people write them: ``200M``, ``1.5B``, ``300000``. Raises ``InputError``."""
    match = TOKENS.fullmatch(text.strip().replace(",", "").replace("_", ""))
    tokens = float(match[1]) * THOUSANDS[match[2].lower()] if match else 0.0
    if not 0 < tokens < 1e18:
        raise InputError(f"`--tokens {text}` is not a number of tokens", remedy="write for example `--tokens 200M`")
    return tokens


def checked_price(price: float | None) -> float | None:
    """A price that a call states, if it is one: 0 or more. ``InputError``."""
    if price is not None and not 0 <= price < inf:
        raise InputError(f"`price` is {price}", remedy="state what a GPU-hour costs, such as 1.89")
    return price
