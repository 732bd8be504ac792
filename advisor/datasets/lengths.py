"""How many tokens a row has, by its characters: about, for no tokenizer is asked."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from advisor.datasets.rows import Row, Rows
from advisor.datasets.shapes import Shape, table
from advisor.record import record
from advisor.util import is_list, is_mapping

WIDE = frozenset("WF")
LATIN = 0x250


@record
class Range:
    """An amount that is known within its doubt."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:,.0f} to {self.high:,.0f}"


def around(tokens: float) -> Range:
    """What an estimated length may be: 30 % to each side, as the tokenizer of the model is not asked."""
    doubt = table()["doubt"]
    return Range(tokens * (1 - doubt), tokens * (1 + doubt))


def lengths_of(rows: Rows, shape: Shape) -> list[float]:
    """Tokens of each row that was read; of pairs, of both answers with the prompt."""
    return [tokens_of(row, shape) for row in rows.first]


def tokens_of(row: Mapping[str, Any], shape: Shape) -> float:
    """Of the columns that are trained on or read before."""
    columns = [column for column in shape["needs"] if column in row]
    found = {column: sum(map(_tokens, texts_in(row[column]))) for column in columns}
    if shape["word"] != "pairs":
        return sum(found.values())
    before = sum(tokens for column, tokens in found.items() if column not in {"chosen", "rejected"})
    return found["chosen"] + found["rejected"] + 2 * before


def longest_of(row: Mapping[str, Any], shape: Shape) -> float:
    """Of the longest sequence that a row becomes: a pair becomes two."""
    whole = tokens_of(row, shape)
    if shape["word"] != "pairs":
        return whole
    answers = [sum(map(_tokens, texts_in(row[column]))) for column in ("chosen", "rejected")]
    return (whole - sum(answers)) / 2 + max(answers)


def tokens_in(row: Row, columns: Iterable[str]) -> float:
    """About how many tokens some columns of a row have."""
    return sum(_tokens(text) for column in columns for text in texts_in(row.get(column)))


def texts_in(value: Any) -> Iterator[str]:
    """The texts inside a value."""
    if isinstance(value, str):
        yield value
    elif is_mapping(value):
        yield from (text for inner in value.values() for text in texts_in(inner))
    elif is_list(value):
        yield from (text for inner in value for text in texts_in(inner))


def _tokens(text: str) -> float:
    """Of one text, and of what the template puts around it."""
    return sum(map(_share, text)) + table()["tokens_a_turn"] / 2


@lru_cache(maxsize=4096)
def _share(char: str) -> float:
    """How much of a token a character is."""
    per = table()["characters_a_token"]
    if char.isdigit():
        kind = "digits"
    elif unicodedata.east_asian_width(char) in WIDE:
        kind = "wide"
    elif char.isalpha():
        kind = "letters" if ord(char) < LATIN else "others"
    else:
        kind = "letters" if char == " " else "marks"
    return 1 / per[kind]
