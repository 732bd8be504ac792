"""Bytes of a file -> its text, values and tree; every problem is an ``InputError`` with its place."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, cast

import yaml
from yaml.reader import Reader

from advisor.documents.changes import Path
from advisor.documents.json_tree import json_tree, json_values
from advisor.documents.node import Node, Text
from advisor.documents.yaml_tree import TreeError, described, is_merge, yaml_tree
from advisor.errors import InputError
from advisor.record import record
from advisor.util import MAX_BYTES, regex

Syntax = Literal["yaml", "json"]
_BOM = b"\xef\xbb\xbf"
_FORBIDDEN: dict[str, re.Pattern[str]] = {"yaml": Reader.NON_PRINTABLE, "json": regex("\0")}
"""PyYAML's own pattern, which is large and compiled already."""


@record(eq=False)
class Source:
    """A text with its values. The tree of a JSON is built when it is first asked for."""

    text: Text
    syntax: Syntax
    values: dict[str, Any]
    yaml_root: Node | None = None

    @cached_property
    def root(self) -> Node | None:
        """The tree; None where the text holds nothing."""
        return json_tree(self.text.text) if self.syntax == "json" and self.text.text else self.yaml_root


def parsed(raw: bytes, file: str, syntax: Syntax) -> Source:
    """What the bytes hold. ``InputError`` for all that is not one mapping in that syntax."""
    text = _decoded(raw, file, syntax)
    root = None
    value: object = None
    try:
        if syntax == "json":
            value = json_values(text.text)
        else:
            root = _without_blank(yaml_tree(text.text))
            value = root.value if root else {}
    except (TreeError, yaml.YAMLError) as error:
        raise described(error, text, file) from error
    if not isinstance(value, dict) or (root is not None and root.kind != "mapping"):
        kind = "a list" if isinstance(value, list) else "a single value"
        wanted = "{...}" if syntax == "json" else "`key: value`"
        raise InputError(f"expected a mapping of keys, found {kind}", file, 1, remedy=f"write {wanted}")
    return Source(text, syntax, cast("dict[str, Any]", value), root)


def _without_blank(root: Node | None) -> Node | None:
    """A YAML of comments alone holds nothing, though the parser gives null."""
    return None if root is not None and root.kind == "scalar" and root.start == root.end else root


def _decoded(raw: bytes, file: str, syntax: Syntax) -> Text:
    if len(raw) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES >> 20} MiB", file, remedy="this is no config")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("is UTF-16", file, 1, remedy="save it as UTF-8")
    bom = len(_BOM) if raw.startswith(_BOM) else 0
    try:
        text = Text(raw[bom:].decode(), bom)
    except UnicodeDecodeError as error:
        before = raw[bom : bom + error.start].decode(errors="replace")
        line, column = Text(before).place(len(before))
        raise InputError(
            f"byte 0x{raw[bom + error.start]:02x} is not UTF-8", file, line, column, "save it as UTF-8"
        ) from error
    found = _FORBIDDEN[syntax].search(text.text)
    if found:
        line, column = text.place(found.start())
        name = "a NUL byte" if found.group() == "\0" else f"the control character U+{ord(found.group()):04X}"
        raise InputError(f"contains {name}", file, line, column, "remove it")
    return text


def locate(root: Node | None, path: Path) -> tuple[Node | None, Node] | None:
    """The key, if it has one, and the value at ``path``."""
    if root is None:
        return None
    found: tuple[Node | None, Node] | None = (None, root)
    for part in path:
        found = _entry(found[1].resolved, part)
        if found is None:
            return None
    return found


def _entry(node: Node, part: str | int) -> tuple[Node | None, Node] | None:
    if node.kind == "sequence":
        if isinstance(part, int) and 0 <= part < len(node.children):
            return None, node.children[part]
        return None
    if node.kind != "mapping":
        return None
    if entry := node.entry(part) or node.entry(str(part)):
        return entry
    for key, value in reversed(node.entries):
        if is_merge(key):
            sources = value.resolved.children if value.resolved.kind == "sequence" else [value]
            for source in sources:
                found = _entry(source.resolved, part)
                if found:
                    return found
    return None


def overridden(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """The keys that their mapping holds again further down, with their paths."""
    for key in node.overridden:
        yield (*path, key.value), key
    if node.kind == "mapping":
        for key, value in node.entries:
            yield from overridden(value, (*path, key.value))
    elif node.kind == "sequence":
        for index, item in enumerate(node.children):
            yield from overridden(item, (*path, index))
