"""Rows and sentences within the columns of a terminal: where a name has no room next to its figures, they fold."""

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import TextWrapper

from advisor.record import record

WIDEST = 110
"""Columns of a table: in more of them names would stand far from their figures."""


@record
class Row:
    """A name, its figures in columns of one width, and words that follow them."""

    name: str
    figures: str = ""
    tail: str = ""


class Wrapper(TextWrapper):
    """Breaks lines at spaces, and paths after a slash."""

    wordsep_simple_re = re.compile(r"(\s+|(?<=/))")


def table(rows: Iterable[Row], columns: int) -> Iterator[str]:
    """The rows, aligned; figures below a name, and words below figures, where a line has no room for both."""
    found = list(rows)
    for row in found:
        yield from _lines(row, found, min(columns, WIDEST))


def _lines(row: Row, rows: Sequence[Row], columns: int) -> Iterator[str]:
    """The line of a row, or two or three."""
    wide, tail = max(len(one.figures) for one in rows), max(len(one.tail) for one in rows)
    one_line = wide + tail <= columns
    room = columns - wide - (tail if one_line else 0)
    said = f"{row.figures:<{wide}}{row.tail if one_line else ''}"
    blank = len(said) - len(said.lstrip())
    if len(row.name) < room + blank:
        yield f"{row.name:<{room + blank}}{said.lstrip()}".rstrip()
    else:
        yield from wrapped(row.name, columns)
        if said.strip():
            yield f"{'':<{room}}{said}".rstrip()
    if row.tail and not one_line:
        yield from wrapped(row.tail.strip(), columns, "    ")


def wrapped(text: str, columns: int, first: str = "", under: str = "    ") -> list[str]:
    """Text over lines in which words stay whole."""
    wrapper = Wrapper(
        min(columns, WIDEST),
        initial_indent=first,
        subsequent_indent=under,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(text)
