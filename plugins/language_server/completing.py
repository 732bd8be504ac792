"""Completion: keys, values, models, optimizers, cards, rules. No run is read for it and nothing is estimated."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from advisor.documents.discovery import may_be_deepspeed
from advisor.schemas import axolotl_keys
from advisor.util import Buffers

from .choices import Choice, cards, deepspeed_files, keys_at, models, options_of_cards, rules, values_at
from .json_places import spot_in_json
from .levels import DEEPSPEED
from .places import Spot, spot_in_yaml
from .texts import column_of, lsp, rows_of, units

TRIGGERS = (" ", "=", "[", ",", '"', "/", "-")
TOP = re.compile(r"^([A-Za-z_][\w-]*)\s*:", re.MULTILINE)
LOSS = re.compile(r"^rl\s*:\s*[\"']?(\w+)", re.MULTILINE)
PLUGIN = re.compile(r"^\s*-\s*[\"']?(axolotl\.[\w.]+)", re.MULTILINE)
GPUS = re.compile(r"gpus\s*=\s*(?P<count>(?:\d+\s*n)?\d+\s*x\s*)?(?P<card>\S*)(?P<more>\s.*)?$", re.IGNORECASE)
MODEL = re.compile(r"model\s*=\s*(?P<name>\S*)$")
IGNORE = re.compile(r"(?:file-)?ignore\[(?:[\w-]+,\s*)*(?P<name>[\w-]*)$")
DIRECTIVES = ("gpus=", "model=", "ignore[", "file-ignore[")


FIRST = Choice("base_model", "str", "Property")
"""What makes a YAML one of ours."""


def completions(
    path: str, text: str, at: Any, buffers: Buffers, own: Iterable[str] = (), *, typed: bool = False
) -> list[Any]:
    """What may be put at a position of a text; ``typed``: asked for by a mark, after which no list of keys comes."""
    rows = rows_of(text)
    if at.line >= len(rows):
        return []
    column = column_of(rows[int(at.line)], at.character)
    if path.lower().endswith(".json"):
        return _in_json(text, sum(len(row) + 1 for row in rows[: at.line]) + column, at)
    spot = spot_in_yaml(rows, at.line, column)
    if spot is None or not _is_ours(text, spot):
        begun = spot.typed if spot is not None and spot.part == "key" and not TOP.search(text) else ""
        return _items([FIRST], begun, at, _yaml_word) if begun and FIRST.word.startswith(begun) else []
    if typed and spot.part == "key" and not spot.typed:
        return []
    word, found = _in_comment(spot.typed, own) if spot.part == "comment" else (spot.typed, _of_yaml(spot, text))
    if spot.path == (DEEPSPEED,) and spot.part == "value":
        found = chain(deepspeed_files(os.path.dirname(path), buffers), found)
    return _items(found, word, at, _yaml_word)


def _is_ours(text: str, spot: Spot) -> bool:
    """Whether a YAML is one of axolotl's, or may become one: it has a model, or none but keys that axolotl knows."""
    keys = TOP.findall(text)
    if spot.part == "comment" or "base_model" in keys:
        return True
    known = axolotl_keys().rows(axolotl_keys().root)
    return bool(keys) and all(key in known for key in keys)


def _of_yaml(spot: Spot, text: str) -> Iterator[Choice]:
    """Keys, values, or for a new item of a list both."""
    loss = found[1] if (found := LOSS.search(text)) else ""
    if spot.part in {"key", "item"} and not spot.quoted:
        yield from keys_at(spot.path, spot.siblings, PLUGIN.findall(text), loss)
    if spot.part in {"value", "item"}:
        yield from values_at(spot.path, loss)


def _in_comment(body: str, own: Iterable[str]) -> tuple[str, Iterator[Choice]]:
    """What an ``# advisor:`` says."""
    if gpus := GPUS.match(body):
        if gpus["more"] is not None:
            return gpus["more"].split(" ")[-1], options_of_cards()
        return gpus["card"], cards(own, counted=bool(gpus["count"]))
    if model := MODEL.match(body):
        return model["name"], (Choice(name, kind="Module") for name in models())
    if ignored := IGNORE.match(body):
        return ignored["name"], rules()
    return body, (Choice(word, kind="Keyword") for word in DIRECTIVES)


def _in_json(text: str, offset: int, at: Any) -> list[Any]:
    """In DeepSpeed's JSON."""
    spot = spot_in_json(text, offset) if may_be_deepspeed(text.encode(errors="replace")) else None
    if spot is None:
        return []
    path = (DEEPSPEED, *spot.path)
    found = keys_at(path, spot.siblings) if spot.part == "key" else values_at(path)
    return _items(found, spot.typed, at, _word if spot.quoted else _json_word)


def _word(choice: Choice) -> str:
    """A word as it is."""
    return choice.word


def _json_word(choice: Choice) -> str:
    """A word as JSON has it: keys and names in quotes, switches and numbers without."""
    if choice.kind == "Property":
        return f'"{choice.word}": '
    return choice.word if choice.word in {"true", "false"} or choice.word.isdigit() else f'"{choice.word}"'


def _yaml_word(choice: Choice) -> str:
    """A word as YAML has it: a key with its colon, and with a blank where a value stands on its line."""
    return choice.word + ("" if choice.kind != "Property" else ":" if choice.opens else ": ")


def _items(found: Iterable[Choice], typed: str, at: Any, written: Callable[[Choice], str]) -> list[Any]:
    """The choices that have the letters typed, in their order, as an editor looks for them."""
    span = lsp.Range(lsp.Position(at.line, at.character - units(typed)), at)
    kinds = lsp.CompletionItemKind
    small = typed.lower()
    return [
        lsp.CompletionItem(
            each.word,
            kind=kinds[each.kind],
            detail=each.detail or None,
            sort_text=f"{_rank(each.word.lower(), small)}{place:04}",
            text_edit=lsp.TextEdit(span, written(each)),
        )
        for place, each in enumerate(found)
        if _has(each.word.lower(), small)
    ]


def _rank(word: str, typed: str) -> int:
    """Words that begin with what is typed come first, then those with a part that does."""
    return 0 if word.startswith(typed) else 1 if re.search(rf"[^a-z0-9]{re.escape(typed)}", word) else 2


def _has(word: str, typed: str) -> bool:
    """Whether a word has the letters of another in their order."""
    letters = iter(word)
    return all(letter in letters for letter in typed)
