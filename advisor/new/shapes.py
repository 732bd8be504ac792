"""Rows -> what they are, and how axolotl reads them: ``shapes.json``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.learning import Chat
from advisor.new.reading import Rows
from advisor.util import is_list, is_mapping

SHAPES = Path(__file__).with_name("shapes.json")
OF_PAIRS = ("user", "assistant", "system", "tool")
"""axolotl/prompt_strategies/dpo/chat_template.py@0.19.0; other names are a KeyError there."""
Shape = Mapping[str, Any]
"""A row of the table."""


@cache
def table() -> Any:
    """All of it."""
    return json.loads(SHAPES.read_text(encoding="utf-8"))


def shape_of(rows: Rows) -> Shape:
    """The first that all rows fit. ``InputError`` with the first line that is another than most, or the columns."""
    fits = [next((shape for shape in table()["shapes"] if _fits(row, shape)), None) for row in rows.first]
    known = [shape for shape in fits if shape is not None]
    if not known:
        columns = ", ".join(f"`{name}`" for name in list(rows.first[0])[:8])
        remedy = "rename them: `messages`, `instruction` and `output`, `chosen` and `rejected`, or `text`"
        raise InputError(f"has rows of no known shape, with the columns {columns}", rows.path, 1, remedy=remedy)
    most = max(known, key=known.count)
    odd = next((at for at, shape in enumerate(fits, 1) if shape is not most), None)
    if odd is not None:
        message = f"{known.count(most)} of {len(fits)} rows read have {most.get('why', 'labels')}, and this one has not"
        raise InputError(message, rows.path, odd, remedy="give all rows the same columns, or remove it")
    return most


def _fits(row: Mapping[str, Any], shape: Shape) -> bool:
    return all(_is(row.get(column), kind) for column, kind in shape["needs"].items())


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "flag":
            return isinstance(value, bool)
        case "turns":
            return is_list(value) and bool(value) and all(is_mapping(turn) for turn in value)
        case _:
            return value is not None


def turns_of(rows: Rows, shape: Shape) -> Iterator[Mapping[str, Any]]:
    """All turns of rows that have them."""
    column = shape["entry"]["field_messages"]
    yield from (turn for row in rows.first for turn in row[column])


def mapping_of(turns: Sequence[Mapping[str, Any]], rows: Rows) -> tuple[str, str]:
    """The keys of a turn for who speaks and what. ``InputError`` where no pair is in all of them."""
    for role, content in table()["roles"]["mappings"]:
        if all(role in turn and content in turn for turn in turns):
            return role, content
    keys = ", ".join(f"`{key}`" for key in turns[0])
    raise InputError(f"has turns with {keys}", rows.path, 1, remedy="give them `role` and `content`")


def roles_for(roles: set[str], stated: str | None) -> dict[str, list[str]] | None:
    """How roles are called where axolotl does not know one; None where it knows all, or one must be stated first."""
    known = table()["roles"]
    if roles & set(known["answers"]) and roles <= set(known["known"]):
        return None
    names = {"user": ["user", "human"], "assistant": ["assistant", "gpt"], "system": ["system"], "tool": ["tool"]}
    if stated in roles:
        names["assistant"].append(str(stated))
    left = sorted(roles - {name for others in names.values() for name in others})
    names["user"] += left
    return names


def lacks_an_answer(roles: set[str]) -> bool:
    """Whether no role is called as the model's is."""
    return not roles & set(table()["roles"]["answers"])


def refuse_other_roles(rows: Rows, shape: Shape) -> None:
    """Pairs take the four roles by these names alone: axolotl drops `roles` of their entry."""
    for at, row in enumerate(rows.first, 1):
        columns = (row[column] for column in shape["needs"] if shape["word"] == "pairs")
        turns = (turn for value in columns for turn in (value if is_list(value) else [value]) if is_mapping(turn))
        wrong = next((str(turn.get("role")) for turn in turns if turn.get("role") not in OF_PAIRS), None)
        if wrong is not None:
            said = "a turn without `role`" if wrong == "None" else f"the role `{wrong}`"
            remedy = f"call roles {', '.join(OF_PAIRS)}, and what they say `content`"
            raise InputError(f"has {said}, which axolotl does not take in pairs", rows.path, at, remedy=remedy)


def prompted(shape: Shape, chat: Chat | None, *, chats: bool, finished: bool, extra: bool) -> dict[str, Any]:
    """The entry of rows with a prompt and an answer: text as it is, a user's turn, or Alpaca's words."""
    form = table()["formats"].get(chat.end) if chat is not None and chats else None
    if finished:
        form = "{instruction}"
    if form is None:
        plain = (shape["prompt"], shape["answer"]) == ("instruction", "output")
        form = None if plain else "### Instruction:\n{instruction}\n\n### Response:\n"
    if form is None:
        return {"type": "alpaca"}
    columns = {"field_instruction": shape["prompt"], "field_output": shape["answer"]}
    both = form.replace("{instruction}", "{instruction}\n{input}")
    given = {"field_input": "input", "format": both} if extra else {"format": form}
    return {"type": {**columns, **given, "no_input_format": form}}
