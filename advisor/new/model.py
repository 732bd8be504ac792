"""The model that ``new`` is asked for: its architecture, and whether it was trained to chat."""

import json
import re
from functools import cache
from pathlib import Path

from advisor.errors import InputError
from advisor.models import Architecture, Unknown, resolve_with_config
from advisor.session import Session

CHATS = Path(__file__).with_name("chats.json")
ORDER = (("bases", False), ("chats", True), ("plain_chats", True), ("plain_bases", False))


def architecture_of(name: str, session: Session) -> Architecture:
    """The model of a name. ``InputError`` with what can be done where nobody knows it."""
    context = session.context
    found, _ = resolve_with_config(
        name, model_config=context.model_config or context.models.get(name), offline=context.offline, text_only=True
    )
    if isinstance(found, Unknown):
        said = [hint for hint in found.remedies if "# advisor:" not in hint]
        raise InputError(f"`{name}` is not known: {found.reason}", remedy="; ".join(said))
    return found


def is_chat(name: str) -> bool | None:
    """Whether a model was trained to chat, by its name; None where that says nothing."""
    low = name.lower()
    return next((chats for kind, chats in ORDER if _patterns()[kind].search(low)), None)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Of ``chats.json``."""
    table: dict[str, str] = json.loads(CHATS.read_text(encoding="utf-8"))
    return {kind: re.compile(table[kind]) for kind, _ in ORDER}
