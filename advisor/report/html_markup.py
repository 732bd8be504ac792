"""The words of HTML: escaped text, tables, bars. Pictures are drawn inside tables that say the same in numbers."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from advisor.record import record
from advisor.util import printable, regex

NUMBER = regex(r"[+-]?[\d.,]+(?: (?:of|to) [\d.,]+)?")
FINEST = 2000
"""Of a bar: what is thinner is not seen."""
CODE = regex(r"(`+)([^`]+)\1(?!`)")


@record
class Piece:
    """A part of a bar: its colour by class, where it begins and ends, and what it is."""

    role: str
    start: float
    end: float
    title: str = ""


def plain(text: str) -> str:
    """Text on one line that opens no tag, ends no attribute and steers no terminal."""
    return escape(" ".join(printable(text).split()))


def prose(text: str) -> str:
    """The same, with what stands in backticks as code."""
    return CODE.sub(r"<code>\2</code>", plain(text))


def tag(name: str, content: str, role: str = "") -> str:
    """An element around markup."""
    return f'<{name} class="{role}">{content}</{name}>' if role else f"<{name}>{content}</{name}>"


def folded(title: str, content: str, *, unfolded: bool = False) -> str:
    """Shown on a click, and in print."""
    return f"<details{' open' * unfolded}><summary>{title}</summary>{content}</details>"


def scrolling(content: str) -> str:
    """What scrolls sideways where it is too wide, by keys as well."""
    return f'<div class="scroll" tabindex="0">{content}</div>'


def listed(items: Iterable[str], role: str = "") -> str:
    """A list of markup."""
    return tag("ul", "".join(tag("li", item) for item in items), role)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], role: str = "") -> str:
    """A table of markup; the first cell of each row names it, what is a number stands on the right."""
    rows = list(rows)
    numeric = [any(is_number(cells[place]) for cells in rows) for place in range(1, len(heads))]
    roles = (' class="n"' if right else "" for right in (False, *numeric))
    head = "".join(f'<th scope="col"{role}>{name}</th>' for name, role in zip(heads, roles, strict=True))
    body = "".join(tag("tr", row(cells)) for cells in rows)
    return tag("table", f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>", role)


def row(cells: Sequence[str]) -> str:
    """The cells of a row."""
    first, *rest = cells
    return f'<th scope="row">{first}</th>' + "".join(tag("td", cell, "n" if is_number(cell) else "") for cell in rest)


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, or two."""
    return NUMBER.fullmatch(cell) is not None


def bar(pieces: Iterable[Piece], most: float, limit: float | None = None) -> str:
    """A bar as wide as its cell, ``most`` being all of it, with a line at ``limit``. Numbers stand next to it."""
    drawn = "".join(_rectangle(piece, most) for piece in pieces if piece.end - piece.start > most / FINEST)
    if limit is not None and most > 0:
        drawn += f'<rect class="limit" x="{share(limit, most)}" width="2"/>'
    return f'<svg aria-hidden="true">{drawn}</svg>'


def _rectangle(piece: Piece, most: float) -> str:
    """One part of a bar."""
    title = tag("title", plain(piece.title)) if piece.title else ""
    width = share(piece.end - piece.start, most)
    return f'<rect class="{piece.role}" x="{share(piece.start, most)}" width="{width}">{title}</rect>'


def share(value: float, most: float) -> str:
    """A part of the whole in per cent."""
    return f"{100 * value / most:.2f}%" if most > 0 else "0%"


def legend(roles: Iterable[tuple[str, str]]) -> str:
    """What the colours mean."""
    marks = "".join(f'<li><i class="{role}"></i>{plain(words)}</li>' for role, words in roles)
    return f'<ul class="legend">{marks}</ul>'


def diff(text: str) -> str:
    """A unified diff, its lines in colours."""
    return tag("pre", "\n".join(_diff_line(printable(line)) for line in re.split(r"\r\n|\r|\n", text.rstrip())))


def _diff_line(line: str) -> str:
    """One line of a diff."""
    if line.startswith(("--- ", "+++ ")):
        return tag("b", escape(line))
    match line[:1]:
        case "+":
            return tag("ins", escape(line))
        case "-":
            return tag("del", escape(line))
        case _:
            return escape(line)
