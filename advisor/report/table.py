"""A table that keeps to its columns: what is too wide for one line goes below its row, or is left out."""

from collections.abc import Sequence

from advisor.record import record
from advisor.report.style import Style

GAP = 2


@record
class Row:
    """A letter, cells (the first a text, the others numbers), and what to type."""

    letter: str
    cells: tuple[str, ...]
    command: str = ""
    strong: bool = False


def table(heads: Sequence[str], rows: Sequence[Row], style: Style, *, command: str = "to write it") -> list[str]:
    """The lines of a table under its heads, none wider than the style."""
    widths = [max(len(row.cells[at]) for row in rows if _is_whole(row)) for at in range(len(heads))]
    widths = [max(width, len(head)) for width, head in zip(widths, heads, strict=True)]
    commands = max(len(row.command) for row in rows)
    figures = sum(widths[1:]) + GAP * (len(heads) - 1)
    on_line = bool(commands) and 3 + widths[0] + figures + GAP + max(commands, len(command)) <= style.width
    widths[0] = min(widths[0], style.width - 3 - figures)
    head = _line("", heads, widths) + (f"{' ' * GAP}{command}" if on_line else "")
    return [style.paint(head.rstrip(), "faint"), *(line for row in rows for line in _row(row, widths, style, on_line))]


def _is_whole(row: Row) -> bool:
    """Whether a row has figures; one that has none may run on under their heads."""
    return any(row.cells[1:])


def _row(row: Row, widths: Sequence[int], style: Style, on_line: bool) -> list[str]:
    """One row, its first cell wrapped where it is too long."""
    role = "strong" if row.strong else ""
    if not _is_whole(row):
        return [*style.prose(row.cells[0], f"{row.letter:<3}", indent=3)]
    first, *rest = _wrapped(row.cells[0], widths[0])
    line = _line(row.letter, (first, *row.cells[1:]), widths)
    line += f"{' ' * GAP}{style.paint(row.command, 'help')}" if on_line and row.command else ""
    below = [f"   {style.paint(row.command, 'help')}"] if row.command and not on_line else []
    return [style.paint(line.rstrip(), role) if role else line.rstrip(), *(f"   {part}" for part in rest), *below]


def _wrapped(text: str, width: int) -> list[str]:
    """A text in lines of a width."""
    from textwrap import wrap

    return wrap(text, max(width, 8), break_on_hyphens=False) or [""]


def _line(letter: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first cell to the left, the figures to the right."""
    figures = (f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
    return f"{letter:<3}{cells[0]:<{widths[0]}}" + "".join(" " * GAP + figure for figure in figures)
