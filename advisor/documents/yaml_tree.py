"""YAML text -> tree of nodes. Events are counted as they come: no input recurses or expands without bound."""

from typing import Any, cast

import yaml

from advisor.documents.node import MAX_DEPTH, MAX_NODES, Node, Special, Text
from advisor.documents.yaml_scalars import MERGE, STR, TAG, VALUE, constructed, implicit_tag, knows
from advisor.errors import InputError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_COLLECTIONS = {TAG + name for name in ("map", "seq", "set", "omap", "pairs")}


class TreeError(Exception):
    """What is wrong with a text, at an offset in it."""

    def __init__(self, message: str, offset: int, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.offset, self.remedy = message, offset, remedy


def yaml_tree(text: str) -> Node | None:
    """The root of a text, None where it holds nothing. ``TreeError``, or PyYAML's own for broken syntax."""
    parser = _Loader(text)
    try:
        return _Builder(parser, text).build()
    finally:
        parser.dispose()


class _Builder:
    def __init__(self, parser: Any, text: str) -> None:
        self.parser = parser
        self.text = text
        self.open: list[Node] = []
        self.tags: list[str | None] = []
        self.anchors: dict[str, Node] = {}
        self.root: Node | None = None
        self.documents = 0

    def build(self) -> Node | None:
        parser = self.parser
        while True:
            event = parser.get_event()
            kind: Any = cast("Any", type)(event)
            if kind is yaml.ScalarEvent:
                self.scalar(event)
            elif kind is yaml.MappingStartEvent:
                self.start(event, "mapping")
            elif kind is yaml.SequenceStartEvent:
                self.start(event, "sequence")
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.finish(event.end_mark.index)
            elif kind is yaml.AliasEvent:
                self.alias(event)
            elif kind is yaml.DocumentStartEvent:
                self.document(event)
            elif kind is yaml.StreamEndEvent:
                return self.root

    def document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            raise TreeError("a second document begins here", event.start_mark.index, "keep one document in the file")

    def scalar(self, event: Any) -> None:
        tag, text = event.tag, event.value
        if tag is None or tag == "!":
            tag = implicit_tag(text) if event.implicit[0] else STR
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in {"|", ">"}:
            end = start + len(self.text[start:end].rstrip(" \t\r\n"))
        node = Node("scalar", start, end, event.style or "")
        if tag == STR:
            node.value = text
        elif tag in (MERGE, VALUE):
            node.value = Special(text)
        elif not knows(tag):
            raise TreeError(
                f"the tag `{shown(tag)}` has no place in a config", start, "remove it; tags run no code here"
            )
        else:
            try:
                node.value = constructed(tag, text)
            except (ValueError, yaml.YAMLError) as error:
                shortened = text if len(text) < 40 else text[:37] + "..."
                raise TreeError(f"`{shortened}` is no {shown(tag)[2:]}", start, "correct or quote it") from error
        self.add(node, event.anchor)

    def start(self, event: Any, kind: Any) -> None:
        start = event.start_mark.index
        if len(self.open) >= MAX_DEPTH:
            raise TreeError(_TOO_DEEP, start, "flatten the file")
        tag = None if event.tag == "!" else event.tag
        if tag is not None and tag not in _COLLECTIONS:
            raise TreeError(
                f"the tag `{shown(tag)}` has no place in a config", start, "remove it; tags run no code here"
            )
        node = Node(kind, start, event.end_mark.index, "{" if event.flow_style else "")
        self.name(node, event.anchor)
        self.open.append(node)
        self.tags.append(tag)

    def alias(self, event: Any) -> None:
        start = event.start_mark.index
        target = self.anchors.get(event.anchor)
        if target is None:
            raise TreeError(
                f"`*{event.anchor}` names an anchor that is not above it", start, f"define `&{event.anchor}`"
            )
        if any(node is target for node in self.open):
            raise TreeError(f"`*{event.anchor}` is inside its own anchor", start, "write the value out")
        node = Node("alias", start, event.end_mark.index, "", target.value, target=target, size=target.size)
        self.add(node, None)

    def name(self, node: Node, anchor: str | None) -> None:
        if anchor is None:
            return
        if anchor in self.anchors:
            raise TreeError(f"the anchor `&{anchor}` is defined twice", node.start, "rename one of them")
        self.anchors[anchor] = node
        node.anchor = anchor

    def add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self.name(node, anchor)
        if self.open:
            parent = self.open[-1]
            parent.children.append(node)
            parent.size += node.size
            if parent.size > MAX_NODES:
                raise TreeError(f"more than {MAX_NODES} values, aliases written out", node.start, "this is no config")
        else:
            self.root = node

    def finish(self, end: int) -> None:
        node, tag = self.open.pop(), self.tags.pop()
        if node.kind == "mapping":
            _settle_empty_values(node, self.text)
        if node.style == "{":
            node.end = end
        elif node.children:
            node.end = max(node.end, node.children[-1].end)
        node.value = _mapping_value(node) if node.kind == "mapping" else [_content(item) for item in node.children]
        if tag is not None:
            _retype(node, tag)
        self.add(node, None)


def shown(tag: str) -> str:
    """A tag as it is written."""
    return "!!" + tag.removeprefix(TAG) if tag.startswith(TAG) else tag


def _settle_empty_values(node: Node, text: str) -> None:
    """The parser marks some empty values behind blanks; they stand behind their colon, or else their key."""
    for key, value in zip(node.children[::2], node.children[1::2], strict=True):
        if value.start == value.end and text[value.start - 1] != ":":
            blanks = text[key.end : value.start]
            rest = blanks.lstrip()
            value.start = value.end = key.end + (len(blanks) - len(rest) + 1 if rest.startswith(":") else 0)


def _content(node: Node) -> Any:
    if isinstance(node.value, Special):
        raise TreeError(f"`{node.value.text}` where a value is expected", node.start, "quote it")
    return node.value


def _mapping_value(node: Node) -> dict[Any, Any]:
    """The mapping with its merges, explicit keys first in rank. Of a key that occurs twice the last one counts."""
    merged: dict[Any, Any] = {}
    explicit: dict[Any, Any] = {}
    places: dict[Any, Node] = {}
    for key, value in node.entries:
        if is_merge(key):
            merged |= _merged_values(value)
            continue
        name = key.value.text if isinstance(key.value, Special) else key.value
        try:
            twice = name in places
        except TypeError as error:
            raise TreeError("a key must be a scalar", key.start, "use a plain key") from error
        if twice:
            node.overridden.append(places[name])
        places[name] = key
        explicit[name] = _content(value)
    return {**merged, **explicit} if merged else explicit


class DuplicateKeyError(TreeError):
    """A key that one mapping of a JSON holds twice."""

    def __init__(self, key: Any, first: int, offset: int) -> None:
        super().__init__(f"duplicate key `{key}`", offset, "remove one of them")
        self.first = first


def is_merge(key: Node) -> bool:
    """Whether a key is ``<<``."""
    return isinstance(key.value, Special) and key.value.text == "<<"


def _merged_values(value: Node) -> dict[Any, Any]:
    """What a merge brings in; of several mappings the first wins."""
    node = value.resolved
    if node.kind == "mapping":
        return cast("dict[Any, Any]", node.value)
    if node.kind == "sequence" and not [item for item in node.children if not _is_dict(item)]:
        result: dict[Any, Any] = {}
        for item in reversed(node.children):
            result |= cast("dict[Any, Any]", item.value)
        return result
    raise TreeError("`<<` takes a mapping, or a list of mappings", value.start, "name an anchored mapping")


def _is_dict(node: Node) -> bool:
    return type(node.value) is dict


def _retype(node: Node, tag: str) -> None:
    """The three collections that YAML 1.1 builds from mappings and lists, as the safe loader gives them."""
    name = tag.removeprefix(TAG)
    wanted = "mapping" if name in {"map", "set"} else "sequence"
    if node.kind != wanted:
        raise TreeError(f"`!!{name}` on a {node.kind}", node.start, "remove the tag")
    if name not in {"map", "seq"}:
        node.kind = "scalar"
    if name == "set":
        node.value = set(cast("dict[Any, Any]", node.value))
    elif name in {"omap", "pairs"}:
        if not all(isinstance(item, dict) and len(cast("dict[Any, Any]", item)) == 1 for item in node.value):
            raise TreeError(f"`!!{name}` takes a list of single pairs", node.start, "remove the tag")
        node.value = [next(iter(item.items())) for item in node.value]


def described(error: Exception, text: Text, file: str) -> InputError:
    """Any error of ``yaml_tree`` with its file, line, column and remedy."""
    if isinstance(error, TreeError):
        line, column = text.place(error.offset)
        message = error.message
        if isinstance(error, DuplicateKeyError):
            message += f", already on line {text.place(error.first)[0]}"
        return InputError(message, file, line, column, error.remedy)
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return InputError(f"not YAML: {error}", file, remedy="remove the character")
    line, column = text.place(mark.index)
    start = text.line_start(mark.index)
    if "\t" in text.text[start : mark.index + 1] and not text.text[start : mark.index].strip():
        return InputError("a tab in the indentation", file, line, column, "indent with spaces")
    problem = getattr(error, "problem", None) or str(error)
    if "maximum nesting depth" in problem:
        # libyaml of PyYAML 6.0.4 scans ahead of the events and stops at 1,000 levels.
        return InputError(_TOO_DEEP, file, line, column, "flatten the file")
    context: str = getattr(error, "context", None) or ""
    return InputError(f"not YAML: {problem}" + (f" {context}" if context else ""), file, line, column, "fix the syntax")
