"""Shows code: the line that a finding points at with carets under the span, and unified diffs."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from advisor.engine.finding import Place
from advisor.report.style import Style
from advisor.util import path_shown, printable


def snippet(place: Place, texts: Mapping[str, str], style: Style, role: str) -> list[str]:
    """The arrow to the place, then its first line with carets; the arrow alone without a line or a text."""
    if not place.line:
        return [f"{style.paint('  -->', 'frame')} {path_shown(place.file)}"]
    gutter = len(str(place.line))
    arrow = style.paint(" " * gutter + "-->", "frame")
    lines = [f"{arrow} {path_shown(place.file)}:{place.line}:{max(1, place.column)}"]
    rows = lines_of(texts.get(place.file, ""))
    if place.line > len(rows):
        return lines
    bar = style.paint(" " * gutter + " |", "frame")
    code, carets = _underlined(rows[place.line - 1], place)
    number = style.paint(f"{place.line} |", "frame")
    if style.color and len(carets) + gutter + 3 <= style.width:
        code = style.clip(code, style.width - gutter - 3)
    return [*lines, bar, f"{number} {code}".rstrip(), f"{bar} {style.paint(carets, role)}"]


@lru_cache(maxsize=8)
def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a file, broken where its places count them: not at form feeds and the like."""
    return tuple(re.split(r"\r\n?|\n", text.removeprefix("\ufeff")))


def _underlined(row: str, place: Place) -> tuple[str, str]:
    """The line as shown, and the carets under the span; of a span over several lines, under its first."""
    start = max(1, place.column) - 1
    ends_here = place.end_line in (0, place.line)
    end = place.end_column - 1 if ends_here and place.end_column else len(row.rstrip())
    before, under = printable(row[:start]), printable(row[start:end])
    return printable(row), " " * len(before) + "^" * max(1, len(under))


def diff_lines(diff: str, style: Style, indent: str = "") -> Iterator[str]:
    """A unified diff, coloured and indented, whole."""
    for row in map(printable, lines_of(diff.rstrip("\r\n"))) if diff else ():
        role = _role_of(row)
        yield (indent + (style.paint(row, role) if role else row)).rstrip()


def _role_of(row: str) -> str:
    """The colour of a line of a diff."""
    match row[:3]:
        case "---" | "+++":
            return "strong"
        case start if start.startswith("@@"):
            return "hunk"
        case start if start.startswith("+"):
            return "added"
        case start if start.startswith("-"):
            return "removed"
        case _:
            return ""
