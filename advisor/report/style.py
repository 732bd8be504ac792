"""How text meets a terminal: colour, width, and what it can draw."""

from collections.abc import Mapping
from textwrap import wrap
from typing import Literal

from advisor.record import record
from advisor.util import printable, regex

CODES: Mapping[str, str] = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "fits": "1;32",
    "tight": "1;33",
    "does-not-fit": "1;31",
    "unknown": "1;36",
    "help": "1;32",
    "frame": "1;34",
    "strong": "1",
    "faint": "2",
    "added": "32",
    "removed": "31",
    "hunk": "36",
}
"""Select Graphic Rendition parameters (ECMA-48, 8.3.117) by what the text is."""

NARROWEST = 40

BOUND = "\x1f"
"""A space at which no line ends; ``printable`` leaves none in a text."""
WHOLE = regex(
    r"`[^`]*`|(?:add |\d+ edits? with )?--fix(?: --(?:unsafe-fixes|faster))*"
    r"|--gpus (?:\"[^\"]*\"|\S+)|--model-config PATH"
)
"""What is read in one piece: a value or command in backticks, an option with its value."""

Detail = Literal["quiet", "normal", "verbose"]
"""How much the report for people says: ``-q``, nothing, ``-v``."""


@record(eq=False)
class Style:
    """Whether to colour, the columns to keep to, whether blocks and ellipses can be drawn, how much to say."""

    color: bool = False
    width: int = 80
    unicode: bool = True
    detail: Detail = "normal"

    def paint(self, text: str, role: str) -> str:
        """``text`` in the colour of ``role``, a key of ``CODES``."""
        return f"\x1b[{CODES[role]}m{text}\x1b[0m" if self.color and text else text

    def prose(self, text: str, lead: str = "", role: str = "", *, indent: int | None = None) -> list[str]:
        """Lines of at most ``width`` columns, the first opened by ``lead`` in the colour of ``role``."""
        under = " " * (len(lead) if indent is None else indent)
        width = max(self.width, NARROWEST)
        plain = " ".join(printable(text).split())
        lines = wrap(
            _bound(plain, width - len(lead), width - len(under)),
            width,
            initial_indent=lead,
            subsequent_indent=under,
            break_long_words=False,
            break_on_hyphens=False,
        )
        first, *rest = [line.replace(BOUND, " ") for line in lines] or [lead.rstrip()]
        shown = first[: len(lead)]
        return [(self.paint(shown, role) if role else shown) + first[len(shown) :], *rest]

    def clip(self, line: str, columns: int | None = None) -> str:
        """``line`` cut at ``columns`` (default: the width) with an ellipsis."""
        room = columns or self.width
        mark = "…" if self.unicode else "..."
        return line if len(line) <= room else line[: max(0, room - len(mark))] + mark


def _bound(text: str, first: int, room: int) -> str:
    """A text whose pieces stay whole where they are no longer than a line: ``first`` columns, then ``room`` each."""
    words = WHOLE.sub(lambda found: found[0].replace(" ", BOUND), text).split(" ")
    rooms = [first, *(room for _ in words[1:])]
    return " ".join(
        word if len(word) <= limit else word.replace(BOUND, " ") for word, limit in zip(words, rooms, strict=True)
    )
