"""What a chat of a model's family looks like, its template and the token that ends an answer: ``chat.json``."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from advisor.record import record

CHAT = Path(__file__).with_name("chat.json")


@record(kw_only=True)
class Chat:
    """A row of ``chat.json``: how a family's chats are written for axolotl, and whence that is known.

    ``eot_tokens`` and ``base_eot_tokens``: what a model trained to chat, and a base, needs under ``eot_tokens``.
    ``bases``: a pattern in the name of a published base; empty where names do not tell. ``certain``: whether the eos
    token is known to be another where ``eot_tokens`` are needed.
    """

    template: str
    base_template: str
    end: str
    eot_tokens: tuple[str, ...]
    base_eot_tokens: tuple[str, ...]
    pad: str | None
    trims: bool
    system: bool
    source: str
    bases: str = ""
    certain: bool = True

    def is_base(self, name: str) -> bool:
        """Whether a name is surely that of a published base; False where names do not tell."""
        return bool(self.bases) and re.search(self.bases, name.lower()) is not None


def chat_of(model_type: str, name: str) -> Chat | None:
    """The chats of a model by its type and, where versions differ, by its name; None where no source says."""
    low = name.lower()
    return next((chat for names, chat in _rows().get(model_type, ()) if re.search(names, low)), None)


def trimming_templates() -> frozenset[str]:
    """axolotl's own templates that strip blanks from the ends of what is said."""
    chats = [chat for rows in _rows().values() for _, chat in rows if chat.trims]
    return frozenset(one for chat in chats for one in (chat.template, chat.base_template) if "default" not in one)


def end_of(template: str) -> str:
    """The token that closes an answer in one of axolotl's templates; empty where it is the eos token, or not known."""
    return _table()["ends"].get(template, "")


@cache
def _table() -> Any:
    return json.loads(CHAT.read_text(encoding="utf-8"))


@cache
def _rows() -> dict[str, list[tuple[str, Chat]]]:
    """By model type, in the file's order: a pattern in the name (empty: any), and its row."""
    rows: dict[str, list[tuple[str, Chat]]] = {}
    for row in _table()["rows"]:
        types, names, chat = _row(**row)
        for each in types:
            rows.setdefault(each, []).append((names, chat))
    return rows


def _row(
    *, types: list[str], names: str = "", eot_tokens: list[str], base_eot_tokens: list[str], **row: Any
) -> tuple[list[str], str, Chat]:
    return types, names, Chat(eot_tokens=tuple(eot_tokens), base_eot_tokens=tuple(base_eot_tokens), **row)
