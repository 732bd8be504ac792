"""JSON text -> values, and -> the tree that the standard library does not give: what stands where."""

import json
import re
from typing import Any, cast

from advisor.documents.node import MAX_DEPTH, MAX_NODES, Node
from advisor.documents.yaml_tree import DuplicateKeyError, TreeError
from advisor.util import regex

_TOKEN = regex(r'[ \t\r\n]*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\]:,])|(?P<word>[^\s{}\[\]:,"]+))', re.DOTALL)
_LONG_INTEGER = regex(r"\d{4301,}")


class _RepeatedError(Exception):
    pass


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _RepeatedError
    return result


def json_values(text: str) -> Any:
    """What ``json.loads`` gives. ``TreeError`` for what it refuses, for duplicate keys and deep nesting."""
    try:
        if text.count("[") + text.count("{") > MAX_DEPTH or text.count(",") > MAX_NODES:
            _check_size(text)
        return json.loads(text, object_pairs_hook=_without_repeats)
    except _RepeatedError:
        json_tree(text)
        raise
    except json.JSONDecodeError as error:
        raise _explained(text, error) from error
    except ValueError as error:
        found = _LONG_INTEGER.search(text)
        raise TreeError("an integer of more than 4300 digits", found.start() if found else 0, "shorten it") from error


def _check_size(text: str) -> None:
    depth = count = 0
    for match in _TOKEN.finditer(text):
        count += 1
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match["mark"], 0)
        if depth > MAX_DEPTH:
            raise TreeError(f"nested deeper than {MAX_DEPTH} levels", match.end() - 1, "flatten the file")
    if count > 4 * MAX_NODES:
        raise TreeError(f"more than {MAX_NODES} values", 0, "this is no config")


def _explained(text: str, error: json.JSONDecodeError) -> TreeError:
    """The usual slips of the pen by their name."""
    offset = error.pos
    rest, before = text[offset:], text[:offset].rstrip()
    here = rest[:1]
    if rest.startswith(("//", "/*", "#")):
        return TreeError("JSON has no comments", offset, "remove it")
    if (here in {"}", "]"} and before.endswith(",")) or (here == "," and rest[1:].lstrip()[:1] in {"}", "]"}):
        comma = offset if here == "," else len(before) - 1
        return TreeError(
            f"a comma before the closing `{(rest[1:].lstrip() if here == ',' else here)[:1]}`",
            comma,
            "remove it",
        )
    if here == "'":
        return TreeError("JSON strings take double quotes", offset, 'write "..."')
    word = re.match(r"(True|False|None)\b", rest)
    if word:
        written = {"True": "true", "False": "false", "None": "null"}[word.group()]
        return TreeError(f"`{word.group()}` is Python, not JSON", offset, f"write `{written}`")
    if not text.strip():
        return TreeError("the file is empty", 0, "write `{}` at least")
    if error.msg == "Extra data":
        return TreeError("more text after the end of the JSON", offset, "keep one object in the file")
    return TreeError(f"not JSON: {error.msg[0].lower()}{error.msg[1:]}", offset, "fix the syntax")


def json_tree(text: str) -> Node:
    """The tree of a text that ``json_values`` accepts. ``DuplicateKeyError`` for a key that occurs twice."""
    open_nodes: list[Node] = []
    for match in _TOKEN.finditer(text):
        mark, end = match["mark"], match.end()
        if mark is not None and mark in "{[":
            open_nodes.append(Node("mapping" if mark == "{" else "sequence", end - 1, end, "{"))
            continue
        if mark is not None and mark in ":,":
            continue
        if mark is None:
            written = cast("str", match["string"] or match["word"])
            node = Node("scalar", end - len(written), end, '"' if match["string"] else "", json.loads(written))
        else:
            node = open_nodes.pop()
            node.end = end
            node.value = _mapping(node) if node.kind == "mapping" else [item.value for item in node.children]
        if not open_nodes:
            return node
        open_nodes[-1].children.append(node)
    raise TreeError("the text ends too early", len(text), "close what is open")


def _mapping(node: Node) -> dict[str, Any]:
    places: dict[str, int] = {}
    for key, _ in node.entries:
        if key.value in places:
            raise DuplicateKeyError(key.value, places[key.value], key.start)
        places[key.value] = key.start
    return {key.value: value.value for key, value in node.entries}
