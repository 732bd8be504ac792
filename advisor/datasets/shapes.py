"""Rows -> what they are, by their columns: ``shapes.json``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from advisor.datasets.rows import Row, Rows
from advisor.errors import InputError
from advisor.util import is_list, is_mapping

SHAPES = Path(__file__).with_name("shapes.json")
Shape = Mapping[str, Any]
"""A row of the table."""


@cache
def table() -> Any:
    """All of it."""
    return json.loads(SHAPES.read_text(encoding="utf-8"))


def shape_of(rows: Rows) -> Shape:
    """The first that all rows fit. ``InputError`` with the first line that is another than most, or the columns."""
    fits = [fitting(row) for row in rows.first]
    known = [shape for shape in fits if shape is not None]
    if not known:
        raise _unknown(rows)
    most = max(known, key=known.count)
    odd = next((at for at, shape in enumerate(fits) if shape is not most), None)
    if odd is not None:
        others = len(fits) - known.count(most)
        message = f"{known.count(most)} of {len(fits)} rows read have {most['why']}; {others} have not, this one first"
        raise InputError(message, rows.path, rows.lines[odd], remedy="give all rows the same columns, or remove it")
    if "refused" in most:
        raise InputError(most["refused"], rows.path, rows.lines[0], remedy=most["remedy"])
    return most


def fitting(row: Row) -> Shape | None:
    """The first shape that a row fits."""
    return next((shape for shape in table()["shapes"] if _fits(row, shape)), None)


def _unknown(rows: Rows) -> InputError:
    row = rows.first[0]
    inside = next((key for key, value in row.items() if rows.count == 1 and _is(value, "turns")), None)
    if inside is not None:
        message = f"is one JSON object with its rows under `{inside}`, which axolotl takes for a single row"
        return InputError(message, rows.path, rows.lines[0], remedy="write that list alone")
    said = "has rows of no known shape, with the columns " + ", ".join(f"`{name}`" for name in list(row)[:8])
    remedy = "rename them: `messages`, `instruction` and `output`, `chosen` and `rejected`, or `text`"
    return InputError(said, rows.path, rows.lines[0], remedy=remedy)


def _fits(row: Row, shape: Shape) -> bool:
    return all(_is(row.get(column), kind) for column, kind in shape["needs"].items())


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "flag":
            return isinstance(value, bool)
        case "turns":
            return bool(turns_in(value))
        case _:
            return value is not None


def turns_in(value: Any) -> Sequence[Mapping[str, Any]]:
    """The turns that a value holds; none where it holds anything else.

    axolotl opens a string of JSON too: axolotl/prompt_strategies/chat_template.py:1234@0.19.0.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    return value if is_list(value) and all(is_mapping(turn) for turn in value) else ()


def turns_of(rows: Rows, shape: Shape) -> Iterator[Mapping[str, Any]]:
    """All turns of rows that have them."""
    column = shape["entry"]["field_messages"]
    yield from (turn for row in rows.first for turn in turns_in(row[column]))


def mapping_of(turns: Sequence[Mapping[str, Any]], rows: Rows) -> tuple[str, str]:
    """The keys of a turn for who speaks and what. ``InputError`` where no pair is in all of them."""
    for role, content in table()["roles"]["mappings"]:
        if all(role in turn and (content in turn or "tool_calls" in turn) for turn in turns):
            return role, content
    keys = ", ".join(f"`{key}`" for key in turns[0])
    raise InputError(f"has turns with {keys}", rows.path, rows.lines[0], remedy="give them `role` and `content`")


def roles_for(roles: set[str], stated: str | None) -> dict[str, list[str]] | None:
    """How roles are called where axolotl does not know one; None where it knows all, or one must be stated first."""
    known = table()["roles"]
    if roles & set(known["answers"]) and roles <= set(known["known"]):
        return None
    names = {"user": ["user", "human"], "assistant": ["assistant", "gpt"], "system": ["system"], "tool": ["tool"]}
    for ours, others in known["aliases"].items():
        names[ours] += sorted(role for role in roles if role.lower() in others or role.lower() in names[ours])
        names[ours] = list(dict.fromkeys(names[ours]))
    if stated in roles and stated not in names["assistant"]:
        names["assistant"].append(str(stated))
    left = sorted(roles - {name for others in names.values() for name in others})
    names["user"] += left
    return names


def lacks_an_answer(roles: set[str]) -> bool:
    """Whether the role of the model must be stated: none is called as it is, or more than one may be."""
    known = table()["roles"]
    if roles & set(known["answers"]):
        return False
    low = [role.lower() for role in roles]
    return sum(role in {*known["answers"], *known["aliases"]["assistant"]} for role in low) != 1
