"""The methods of ``new``, and those that it does not write: ``methods.json``."""

import json
from pathlib import Path

from advisor.errors import InputError
from advisor.new.request import METHODS, Method

OTHERS = Path(__file__).with_name("methods.json")


def method_named(word: str) -> Method:
    """The method of a word. ``InputError`` that names the nearest example for one that is not written."""
    low = word.lower()
    if low in METHODS:
        return low
    raise refusal(low) or InputError(f"`--method {word}` is none of these", remedy=f"choose {', '.join(METHODS)}")


def refusal(word: str) -> InputError | None:
    """What is said of a method that is known, and not written; None for any other word."""
    others: dict[str, dict[str, str]] = json.loads(OTHERS.read_text(encoding="utf-8"))
    found = others.get(word) if word != "about" else None
    if found is None:
        return None
    message = f"{found['says']}: `advisor new` does not write {word.upper() if len(word) < 5 else word} configs"
    return InputError(message, remedy=f"the nearest of axolotl's own is {found['example']}")
