"""The tree of a text: what stands where. Offsets are in characters of the text without its BOM."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, cast

from advisor.documents.changes import Span
from advisor.record import record
from advisor.util import regex

Kind = Literal["scalar", "mapping", "sequence", "alias"]
MAX_DEPTH = 100
MAX_NODES = 100_000
_LINE_END = regex(r"\r\n|\n|\r")


class Node:
    """A value with its place. ``start`` includes anchor and tag; a block collection ends with its last child.

    ``style``: ``"``, ``'``, ``|`` or ``>`` of a scalar, ``{`` of a flow collection, else empty.
    ``children`` of a mapping are key, value, key, value, ...
    """

    __slots__ = (
        "anchor",
        "children",
        "end",
        "index",
        "kind",
        "overridden",
        "size",
        "start",
        "style",
        "target",
        "value",
    )

    def __init__(
        self,
        kind: Kind,
        start: int,
        end: int,
        style: str = "",
        value: Any = None,
        *,
        target: "Node | None" = None,
        size: int = 1,
    ) -> None:
        self.kind: Kind = kind
        self.start, self.end = start, end
        self.style = style
        self.value = value
        self.children: list[Node] = []
        self.anchor: str | None = None
        self.target = target
        """The node that an alias names."""
        self.size = size
        """Nodes in it, with aliases written out."""
        self.overridden: list[Node] = []
        """The keys of a mapping that it holds again further down; the last one counts."""
        self.index: dict[Any, tuple[Node, Node]] | None = None
        """The entries by key, filled when one is first asked for."""

    @property
    def entries(self) -> "list[tuple[Node, Node]]":
        """The pairs of a mapping, merges (``<<``) among them."""
        return list(zip(self.children[::2], self.children[1::2], strict=True))

    def entry(self, key: Any) -> "tuple[Node, Node] | None":
        """The pair of a mapping that counts under a key."""
        if self.index is None:
            self.index = {entry[0].value: entry for entry in self.entries}
        return self.index.get(key)

    @property
    def resolved(self) -> "Node":
        """What an alias stands for; any other node itself."""
        return self.target if self.target is not None else self


class Special:
    """A plain ``<<`` or ``=``, which YAML 1.1 gives a meaning of their own."""

    def __init__(self, text: str) -> None:
        self.text = text


@record(eq=False)
class Text:
    """Decoded text, and how its characters lie in lines and in the bytes on disk."""

    text: str
    bom: int = 0
    """Length of the byte order mark in bytes."""

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        """1-based line and column."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    @cached_property
    def is_ascii(self) -> bool:
        """Whether characters are bytes."""
        return self.text.isascii()

    def to_byte(self, offset: int) -> int:
        """The byte on disk at which the character at ``offset`` begins."""
        return self.bom + (offset if self.is_ascii else len(self.text[:offset].encode()))

    def span(self, start: int, end: int) -> Span:
        """The same place in bytes, lines and columns."""
        return Span(self.to_byte(start), self.to_byte(end), *self.place(start), *self.place(end))

    def line_start(self, offset: int) -> int:
        """Where the line of ``offset`` begins."""
        return self.line_starts[bisect_right(self.line_starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Where the line of ``offset`` ends, before its line break."""
        match = _LINE_END.search(self.text, offset)
        return match.start() if match else len(self.text)

    def next_line(self, offset: int) -> int:
        """Where the line after that of ``offset`` begins, or the text ends."""
        match = _LINE_END.search(self.text, offset)
        return match.end() if match else len(self.text)

    @cached_property
    def newline(self) -> str:
        """The line break that the text uses first."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, types as well: ``1``, ``1.0`` and ``True`` differ; nan is nan."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        left, right = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        if {(type(key), key) for key in left} != {(type(key), key) for key in right}:
            return False
        return all(same(value, right[key]) for key, value in left.items())
    if isinstance(one, list):
        items, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(others) and all(map(same, items, others))
    return one == other or (one != one and other != other)


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order of the text; aliases are not followed."""
    yield node
    for child in node.children:
        yield from walk(child)
