"""What is said of a death, within the columns of the terminal."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from advisor.cli.crash_log.explain import what_happened
from advisor.cli.crash_log.next_steps import Advice, Remedy
from advisor.cli.crash_log.parse import Cause, Death
from advisor.report.style import Style
from advisor.util import path_shown

WHY_A_CONFIG: dict[Cause, str] = {
    "gpu": "Name the config to see which edits suffice:",
    "host": "Name the config to see how much offloading alone keeps on the host:",
}
"""Deaths of which a config tells more."""
UNDER = " " * 5
SAME, CHANGES, LINES = "Same training, mildest first", "Changes training", "in the YAML"


def headline(death: Death, style: Style) -> list[str]:
    """What died, and of what."""
    said = what_happened(death)
    return style.prose(said.rest, f"{said.what} ", "does-not-fit", indent=0)


def sentences(told: Iterable[str], style: Style) -> Iterator[str]:
    """Each from a line of its own on."""
    for one in filter(None, told):
        yield from style.prose(one)


def way_to_a_config(log: str, death: Death, style: Style) -> Iterator[str]:
    """What to type to be told more."""
    if (why := WHY_A_CONFIG.get(death.cause)) and not death.too_large:
        yield from style.prose(why)
        first, second = f"  advisor oom {path_shown(shlex.quote(log))}", "--config run.yaml"
        whole = f"{first} {second}"
        lines = [whole] if len(whole) <= style.width else [f"{first} \\", f"    {second}"]
        yield from (style.paint(line, "strong") for line in lines)


def remedies(advice: Advice, style: Style) -> Iterator[str]:
    """The lists, each remedy with its lines of YAML next to it, or below where there is no room."""
    every = (*advice.same, *advice.changes)
    column = len(UNDER) + max((len(one.title) for one in every if one.lines), default=0) + 2
    below = any(column + len(line) > style.width for one in every for line in one.lines)
    if advice.same:
        yield SAME if below else SAME.ljust(column) + LINES if len(SAME) < column else f"{SAME}  ({LINES})"
        yield from _numbered(advice.same, 1, 0 if below else column)
    if advice.changes:
        yield CHANGES
        yield from _numbered(advice.changes, len(advice.same) + 1, 0 if below else column)
    if every and advice.notes:
        yield ""
    yield from sentences(advice.notes, style)


def _numbered(listed: Sequence[Remedy], start: int, column: int) -> Iterator[str]:
    """A line for each remedy; without a column its lines stand below it."""
    for number, one in enumerate(listed, start):
        title = f"{number:>3}. {one.title}"
        if column and one.lines:
            yield f"{title:<{column}}{one.lines[0]}"
            yield from (" " * column + line for line in one.lines[1:])
        else:
            yield title
            yield from (UNDER + line for line in one.lines)
