"""Where a cursor stands in a YAML that is being typed, and so need not parse: the keys around it, the word so far."""

import re
from collections.abc import Sequence
from typing import Literal

from advisor.record import record

Part = Literal["key", "value", "item", "comment"]
Path = tuple[str, ...]
ITEM = "[]"
"""An item of a list in a path."""
ROW = re.compile(r"(?P<indent>\s*)(?P<dashes>(?:-[ \t]+)*)(?P<rest>.*)")
KEY = re.compile(r"""(?P<quote>["']?)(?P<name>[A-Za-z_][\w.-]*)(?P=quote)[ \t]*:(?:[ \t]+(?P<value>.*)|$)""")
COMMENT = re.compile(r"(?:^|(?<=\s))#\s*advisor:\s*(?P<body>[^#]*)$")
OTHER_COMMENT = re.compile(r"(?:^|\s)#")
TYPED = re.compile(r"[^\s\[\]{},\"']*$")
OPENED = re.compile(r"[\w.-]*$")


@record
class Spot:
    """A place where something may be completed.

    ``path``: the keys around it, ``ITEM`` for an item of a list; of a value its own key last. ``typed``: the word so
    far, which a choice replaces. ``siblings``: the keys that the same mapping has already. ``quoted``: the word stands
    in quotes, or in JSON between them.
    """

    part: Part
    path: Path
    typed: str
    siblings: frozenset[str] = frozenset()
    quoted: bool = False


def spot_in_yaml(rows: Sequence[str], line: int, column: int) -> Spot | None:
    """The place at a line and a character, both from 0; None where nothing is completed."""
    before = rows[line][:column]
    if comment := COMMENT.search(before):
        return Spot("comment", (), comment["body"])
    if OTHER_COMMENT.search(before):
        return None
    row = ROW.fullmatch(before)
    assert row is not None, "it matches every line"
    lead = len(row["indent"]) + len(row["dashes"])
    path, siblings = _around(rows, line, lead, len(row["indent"]) if row["dashes"] else None)
    rest = row["rest"]
    if (key := KEY.fullmatch(rest)) and key["value"] is not None:
        return _value(path, key["name"], key["value"])
    if not OPENED.fullmatch(rest):
        return Spot("item", path, _word(rest), quoted=rest[:1] in {'"', "'"}) if row["dashes"] else None
    return Spot("item" if row["dashes"] else "key", path, rest, siblings)


def _value(path: Path, key: str, value: str) -> Spot | None:
    """A value on the line of its key; inside of brackets an item of it."""
    typed = _word(value)
    lead = value[: len(value) - len(typed)]
    if value.startswith("{"):
        return None
    inside = (ITEM,) if lead.startswith("[") else ()
    return Spot("value", (*path, key, *inside), typed, quoted=lead.endswith(('"', "'")))


def _word(text: str) -> str:
    """What stands between the last mark or blank and the cursor."""
    found = TYPED.search(text)
    return found[0] if found else ""


def _around(rows: Sequence[str], line: int, column: int, dash: int | None) -> tuple[Path, frozenset[str]]:
    """The keys that a place in a column is inside of, outermost first, and those next to it.

    ``dash``: the column of the item's own dash, where that stands on the line.
    """
    siblings = {name for step in (1, -1) for name in _siblings(rows, line, column, step, dash)}
    path: list[str] = [ITEM] if dash is not None else []
    limit, is_item = (column, False) if dash is None else (dash, True)
    for at in range(line - 1, -1, -1):
        if not (limit or is_item):
            break
        row = ROW.fullmatch(rows[at])
        if row is None or not row["rest"] or row["rest"].startswith("#"):
            continue
        indent, lead = len(row["indent"]), len(row["indent"]) + len(row["dashes"])
        inside_item = bool(row["dashes"]) and not is_item and indent < limit
        is_above = lead < limit or (is_item and lead == limit and not row["dashes"])
        key = KEY.match(row["rest"]) if is_above else None
        if key is not None:
            path.append(key["name"])
            limit, is_item = lead, False
        if inside_item and (key is not None or lead == limit):
            path.append(ITEM)
            limit, is_item = indent, True
    return tuple(reversed(path)), frozenset(siblings)


def _siblings(rows: Sequence[str], line: int, column: int, step: int, dash: int | None) -> Sequence[str]:
    """The keys in the same column on the lines before or after, as far as the mapping goes."""
    found: list[str] = []
    at = line + step
    while 0 <= at < len(rows) and not (step < 0 and dash is not None):
        row = ROW.fullmatch(rows[at])
        at += step
        if row is None or not row["rest"] or row["rest"].startswith("#"):
            continue
        indent, lead = len(row["indent"]), len(row["indent"]) + len(row["dashes"])
        if lead == column and (key := KEY.match(row["rest"])) and (step < 0 or not row["dashes"]):
            found.append(key["name"])
        if indent < column:
            break
    return found
