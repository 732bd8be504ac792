"""A shape -> the entry of ``datasets`` by which axolotl reads its rows."""

from typing import Any

from advisor.datasets.rows import Rows
from advisor.datasets.shapes import Shape, table, turns_in
from advisor.errors import InputError
from advisor.learning import Chat
from advisor.util import is_mapping

OF_PAIRS = ("user", "assistant", "system", "tool")
"""axolotl/prompt_strategies/dpo/chat_template.py@0.19.0; other names are a KeyError there."""
ALPACA = "### Instruction:\n{instruction}\n\n### Response:\n"


def refuse_other_roles(rows: Rows, shape: Shape) -> None:
    """Pairs take the four roles by these names alone: axolotl drops `roles` of their entry."""
    for line, row in zip(rows.lines, rows.first, strict=True):
        columns = (row[column] for column in shape["needs"] if shape["word"] == "pairs")
        turns = (turn for value in columns for turn in (turns_in(value) or [value]) if is_mapping(turn))
        wrong = next((str(turn.get("role")) for turn in turns if turn.get("role") not in OF_PAIRS), None)
        if wrong is not None:
            said = "a turn without `role`" if wrong == "None" else f"the role `{wrong}`"
            remedy = f"call roles {', '.join(OF_PAIRS)}, and what they say `content`"
            raise InputError(f"has {said}, which axolotl does not take in pairs", rows.path, line, remedy=remedy)


def prompted(rows: Rows, shape: Shape, chat: Chat | None, *, chats: bool, finished: bool) -> dict[str, Any]:
    """The entry of rows with a prompt and an answer: text as it is, a user's turn, or Alpaca's words."""
    form, before = table()["formats"].get(chat.end, (None, "")) if chat is not None and chats else (None, "")
    extra = next((name for name in shape.get("extra", ()) if any(name in row for row in rows.first)), None)
    system = shape.get("system") if any(row.get(shape.get("system", "")) for row in rows.first) else None
    if finished:
        form, before = "{instruction}", "{system}\n\n"
    if form is None:
        if (shape["prompt"], shape["answer"]) == ("instruction", "output") and system is None:
            return {"type": "alpaca"}
        form, before = ALPACA, "{system}\n\n"
    both = form.replace("{instruction}", "{instruction}\n{input}") if extra is not None else form
    columns = {
        "field_instruction": shape["prompt"],
        "field_output": shape["answer"],
        **({"field_input": extra} if extra is not None else {}),
        **({"field_system": system, "system_format": before} if system is not None else {}),
    }
    return {"type": {**columns, "format": both, "no_input_format": form}}
