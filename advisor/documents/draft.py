"""A text that is being changed: its tree, its habits of writing, and the splices gathered so far."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

from advisor.documents.changes import PatchError, Path
from advisor.documents.node import Node, Text, walk
from advisor.documents.splices import Splices
from advisor.documents.yaml_writer import Style, is_block
from advisor.record import record
from advisor.util import regex

_COLON = regex(r"[ \t]*:")
_BLANKS = regex(r"[ \t]*")

Additions = Mapping[int, Sequence[tuple[Any, Any]]]
"""New pairs of key and value (None and an item in lists), by the index of the entry before them; -1: none."""


@record(eq=False)
class Slot:
    """Where a value sits: behind a key in block style, behind a dash, inside flow style, or at the root."""

    kind: Literal["root", "value", "item", "flow"]
    key: Node | None = None
    indent: int = 0
    """Blanks before the key or the dash."""


@record(eq=False, frozen=False)
class Draft:
    """Offsets refer to ``source`` throughout; nothing is changed until the splices are settled."""

    source: Text
    root: Node
    is_json: bool
    origins: Mapping[Path, Any]
    """Paths of renamed keys, and what the keys are called in the text."""
    splices: Splices = field(default_factory=Splices)
    settled: dict[int, Any] = field(default_factory=dict[int, Any])
    """What the anchored nodes that stay will hold, by the id of the node."""

    gone: set[int] = field(default_factory=set[int])
    """Ids of the nodes that are removed."""
    ends: dict[int, int] = field(default_factory=dict[int, int])
    """Where the nodes that are replaced will end, by their ids."""

    @property
    def text(self) -> str:
        """All of it."""
        return self.source.text

    @cached_property
    def anchored(self) -> bool:
        """Whether a change in one place can show in another."""
        return any(node.anchor for node in walk(self.root))

    @cached_property
    def style(self) -> Style:
        """Indentation as the first nested mapping and the first list below a key have it."""
        found: dict[str, int] = {}
        for node in walk(self.root):
            if node.kind != "mapping" or node.style:
                continue
            for key, value in node.entries:
                if not value.style and value.children and value.kind != "alias":
                    depth = self.column(first(value).start) - self.column(key.start)
                    found.setdefault(value.kind, depth)
        step = found.get("mapping", 0) or found.get("sequence", 0) or 2
        return Style(step, found.get("sequence", step))

    @cached_property
    def json_indent(self) -> str | int:
        """What one level of the file's JSON is indented by."""
        for node in walk(self.root):
            for child in node.children[:1]:
                outer, inner = self.indentation(node.start), self.indentation(child.start)
                if self.is_first_on_line(child.start) and inner.startswith(outer) and inner != outer:
                    return inner.removeprefix(outer)
        return 2

    def column(self, offset: int) -> int:
        """Characters before ``offset`` on its line."""
        return offset - self.source.line_start(offset)

    def indentation(self, offset: int) -> str:
        """The blanks that the line of ``offset`` begins with."""
        match = _BLANKS.match(self.text, self.source.line_start(offset))
        return match.group() if match else ""

    def is_first_on_line(self, offset: int) -> bool:
        """Whether only blanks stand before ``offset`` on its line."""
        return not self.text[self.source.line_start(offset) : offset].strip()

    def rest_of_line(self, offset: int) -> str:
        """What follows on the line."""
        return self.text[offset : self.source.line_end(offset)]

    def scalar_text(self, node: Node) -> str:
        """What is written of a scalar, without quotes; empty for what is none."""
        return self.text[node.start : node.end].strip("\"'") if node.kind == "scalar" else ""

    def after_colon(self, key: Node) -> int:
        """Behind the colon of a key. ``PatchError`` where it does not follow on the line."""
        match = _COLON.match(self.text, key.end)
        if match is None:
            raise PatchError("a key written with `?` cannot be edited", line=self.source.place(key.start)[0])
        return match.end()

    def json_text(self, value: Any, prefix: str | None) -> str:
        """JSON for a value, over lines that begin with ``prefix``, or on one line where that is None."""
        try:
            lines = prefix is not None and is_block(value)
            text = json.dumps(value, indent=self.json_indent if lines else None, ensure_ascii=False)
            if any("\ud800" <= char <= "\udfff" for char in text):
                text = json.dumps(value, indent=self.json_indent if lines else None)
        except (TypeError, ValueError) as error:
            raise PatchError(f"cannot be written as JSON: {error}") from error
        return text.replace("\n", self.source.newline + prefix) if lines and prefix is not None else text


def first(node: Node) -> Node:
    """The node with which a block mapping begins; a list itself, since its mark is its first dash."""
    return node.children[0] if node.kind == "mapping" else node


def last(node: Node) -> Node:
    """The node with which a node ends."""
    while node.children:
        node = node.children[-1]
    return node
