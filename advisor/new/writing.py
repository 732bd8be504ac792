"""Values -> the text of a config: in blocks, with a comment on each line."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from advisor.documents.yaml_writer import is_block, scalar, scalar_or_empty
from advisor.new.comments import groups
from advisor.record import record
from advisor.util import is_list, is_mapping

WIDEST = 120
COLUMN = 40
"""Comments stand there, unless a line is longer."""
SMALL = ("learning_rate",)
"""Numbers that are read with an exponent."""
Says = Callable[[str, Any], str]
"""The comment of the line at a path with this value."""


@record
class Line:
    """A line without its comment, and where its value stands."""

    text: str
    path: str
    value: Any


def written(values: Mapping[str, Any], head: Sequence[str], says: Says) -> str:
    """The config under a head of comments."""
    blocks: list[list[str]] = []
    left = dict(values)
    known = {key for group in groups() for key in group}
    for group in (*groups(), [key for key in values if key not in known]):
        lines = [line for key in group if key in left for line in lines_of(key, left[key], key, 0)]
        if lines:
            blocks.append([part for line in lines for part in _with_comment(line, says(line.path, line.value))])
    return "\n\n".join("\n".join(block) for block in [[f"# {line}" for line in head], *blocks]) + "\n"


def lines_of(key: str, value: Any, path: str, indent: int) -> Iterator[Line]:
    """The lines of one key."""
    lead = f"{' ' * indent}{scalar(key)}:"
    if not is_block(value):
        like = "1e-5" if key in SMALL else ""
        yield Line(f"{lead} {scalar_or_empty(value, like)}", path, value)
        return
    yield Line(lead, path, None)
    if is_mapping(value):
        for name, inner in value.items():
            yield from lines_of(str(name), inner, f"{path}.{name}", indent + 2)
    elif is_list(value):
        for item in value:
            yield from _items(item, f"{path}[]", indent + 2)


def _items(item: Any, path: str, indent: int) -> Iterator[Line]:
    """The lines of an item of a list."""
    if not is_mapping(item):
        yield Line(f"{' ' * indent}- {scalar_or_empty(item)}", path, item)
        return
    entries = cast("Mapping[str, Any]", item).items()
    lines = [line for name, inner in entries for line in lines_of(str(name), inner, f"{path}.{name}", indent + 2)]
    for number, line in enumerate(lines):
        text = line.text if number else f"{' ' * indent}- {line.text.lstrip()}"
        yield Line(text, line.path, line.value)


def _with_comment(line: Line, said: str) -> list[str]:
    """The line with its comment behind it, or below the comment where both are too long."""
    text = re.sub(r"\s+", " ", said).strip()
    if not text:
        return [line.text]
    whole = f"{line.text:<{COLUMN}}  # {text}"
    if len(whole) <= WIDEST:
        return [whole]
    from textwrap import wrap

    margin = " " * (len(line.text) - len(line.text.lstrip()))
    return [*(f"{margin}# {part}" for part in wrap(text, WIDEST - len(margin) - 2)), line.text]
