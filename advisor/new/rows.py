"""The rows of the data as ``new`` needs them; without data a place for it, and the shapes that it may have."""

import os
from collections.abc import Iterator
from typing import Any

from advisor.datasets import (
    Rows,
    Shape,
    around,
    lacks_an_answer,
    lengths_of,
    longest_of,
    mapping_of,
    prompted,
    refuse_other_roles,
    roles_for,
    rows_in,
    shape_of,
    table,
    turns_in,
    turns_of,
)
from advisor.errors import InputError
from advisor.learning import Chat
from advisor.new.methods import refusal
from advisor.new.request import Choice, Question, Request, Seen

PLACE = "./data.jsonl"
"""Where the data will be, if nobody says."""
STATE = "state what its rows are with --rows-as turns, pairs, instructions or text"
PREFERRED = {"rl": "dpo"}
WORDS = ("turns", "pairs", "instructions", "text")
"""What rows may be stated to be that are not read here."""
FINISHED = (
    Choice(word="turn", title="the prompt is what a user says"),
    Choice(word="finished", title="the prompt is finished text, to be continued as it is"),
)


def open_in(request: Request) -> Iterator[Question]:
    """What the rows leave open."""
    if not request.data or request.rows_as is not None or not os.path.isfile(request.data):
        return
    rows = rows_in(request.data)
    shape = shape_of(rows)
    if shape.get("open"):
        yield Question(field="rows_as", option="--rows-as", text="The rows are", choices=FINISHED, default="turn")
    elif shape["word"] == "turns" and lacks_an_answer(set(roles := _roles(rows, shape))):
        choices = tuple(Choice(word=role, title="is the model") for role in roles)
        text, last = "The model is called", choices[-1].word
        yield Question(field="rows_as", option="--rows-as", text=text, choices=choices, default=last)


def _roles(rows: Rows, shape: Shape) -> list[str]:
    """Who speaks, the last speaker of the first row last."""
    turns = list(turns_of(rows, shape))
    key = mapping_of(turns, rows)[0]
    last = str(turns_in(rows.first[0][shape["entry"]["field_messages"]])[-1][key])
    return [*sorted({str(turn[key]) for turn in turns} - {last}), last]


def seen_in(request: Request, chat: Chat | None, *, chats: bool) -> Seen:
    """What the data holds, and how axolotl reads it. ``InputError`` where that must be stated."""
    if not request.data:
        return _stated("pairs" if request.method == "dpo" else "turns", PLACE, "there is no data yet")
    word = request.rows_as
    if not os.path.isfile(request.data) and word is not None and word in WORDS:
        return _stated(word, request.data, f"rows of {word}, as stated")
    rows = rows_in(request.data, STATE)
    shape = shape_of(rows)
    if (other := refusal(shape.get("method", ""))) is not None:
        raise other
    entry = _entry(request, rows, shape, chat, chats=chats)
    paired, words = shape["word"] == "pairs", shape["why"]
    lengths = lengths_of(rows, shape)
    longest = around(max(longest_of(row, shape) for row in rows.first))
    mean = sum(lengths) / len(lengths)
    said = f"{around(mean)} tokens each, the longest of the first {len(lengths)} {longest}"
    return Seen(
        entry={"path": request.data, **entry},
        root=PREFERRED if paired else {},
        paired=paired,
        templated=str(entry["type"]).startswith("chat_template"),
        plain_text=shape["word"] == "text",
        why=f"{rows.count:,} rows: {words}",
        rows=rows.count,
        mean=mean,
        longest=round(longest.high),
        said=(said,) if rows.whole else (f"{said}; all are taken to be like them",),
    )


def _entry(request: Request, rows: Rows, shape: Shape, chat: Chat | None, *, chats: bool) -> dict[str, Any]:
    """How axolotl reads the rows."""
    if shape["word"] == "turns":
        return {**shape["entry"], **_turn_keys(request, rows, shape)}
    if "entry" in shape:
        refuse_other_roles(rows, shape)
        return dict(shape["entry"])
    finished = bool(shape.get("open")) and (request.rows_as == "finished" or (request.rows_as is None and not chats))
    return prompted(rows, shape, chat, chats=chats, finished=finished)


def _turn_keys(request: Request, rows: Rows, shape: Shape) -> dict[str, Any]:
    """Keys of turns, and roles, where they are other than axolotl's."""
    turns = list(turns_of(rows, shape))
    role, content = mapping_of(turns, rows)
    roles = set(named := _roles(rows, shape))
    if lacks_an_answer(roles) and request.rows_as not in roles:
        said = f"has turns of {', '.join(f'`{one}`' for one in named)}, and none is called `assistant`"
        remedy = f"state the role that is the model: --rows-as {named[-1]}"
        raise InputError(said, rows.path, rows.lines[0], remedy=remedy)
    keys: dict[str, Any] = {}
    if (role, content) != ("role", "content"):
        keys["message_property_mappings"] = {"role": role, "content": content}
    names = roles_for(roles, request.rows_as)
    return keys | ({"roles": names} if names is not None else {})


def _stated(word: str, path: str, why: str) -> Seen:
    """Rows that nobody reads: the first shape of that word."""
    shape = next(shape for shape in table()["shapes"] if shape["word"] == word and shape.get("why"))
    entry = dict(shape.get("entry") or {"type": "alpaca"})
    paired = word == "pairs"
    return Seen(
        entry={"path": path, **entry},
        root=PREFERRED if paired else {},
        paired=paired,
        templated=str(entry["type"]).startswith("chat_template"),
        plain_text=word == "text",
        why=why,
    )
