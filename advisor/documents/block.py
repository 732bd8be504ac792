"""Edits of YAML's block style: whole lines come and go, comments of the neighbours stay."""

import re
from typing import Any

from advisor.documents.changes import PatchError
from advisor.documents.draft import Additions, Draft, Slot, last
from advisor.documents.node import Node
from advisor.documents.yaml_writer import block, entry, inline, is_block, list_item, scalar, scalar_or_empty
from advisor.util import regex

_HEADER = regex(r"[|>][0-9]?([+-]?)")
_COMMENT_LINES = regex(r"(?:[ \t]*(?:\r\n|\n|\r))*(?P<blanks> *)#[^\r\n]*(?:\r\n|\n|\r|\Z)")
_BLANK_LINES = regex(r"(?:[ \t]*(?:\r\n|\n|\r))*")


class Block:
    """One block collection under change. A part runs from its key or dash to the end of its value."""

    def __init__(self, draft: Draft, node: Node, keep: list[bool], additions: Additions) -> None:
        self.draft, self.node, self.keep, self.additions = draft, node, keep, additions
        self.heads = heads(draft, node)
        self.tails = [value.end for value in node.children[1::2]] if node.kind == "mapping" else []
        if node.kind == "sequence":
            self.tails = [max(head + 1, item.end) for head, item in zip(self.heads, node.children, strict=True)]
        self.indent = draft.column(self.heads[0])

    def edit(self) -> None:
        """What goes, and what comes."""
        self.draft.gone |= {id(self.value(i)) for i, stays in enumerate(self.keep) if not stays}
        index = 0
        while index < len(self.keep):
            index = index + 1 if self.keep[index] else self.remove(index)
        for place, pairs in self.additions.items():
            lines = [line for key, value in pairs for line in self.lines(key, value)]
            self.add(place, lines)

    def lines(self, key: Any, value: Any) -> list[str]:
        """The lines of a new part."""
        if self.node.kind == "mapping":
            return entry(key, value, self.indent, self.draft.style)
        return list_item(value, self.indent, self.draft.style)

    def value(self, index: int) -> Node:
        """The value of a part."""
        return self.node.children[2 * index + 1 if self.node.kind == "mapping" else index]

    def remove(self, index: int) -> int:
        """Take out a part, or a run of parts behind a dash; says where to go on."""
        draft, head = self.draft, self.heads[index]
        if draft.is_first_on_line(head):
            self.remove_lines(index)
            return index + 1
        stays = self.keep.index(True, index)
        end = _after_value(draft, self.value(stays - 1), self.tails[stays - 1])
        rest = draft.text[end : self.heads[stays]]
        draft.splices.delete(head, end + len(rest) - len(rest.lstrip()))
        return stays

    def remove_lines(self, index: int) -> None:
        """Whole lines, with the comments below them that are indented deeper."""
        draft = self.draft
        end = _after_own_comments(draft, _after_value(draft, self.value(index), self.tails[index]), self.indent)
        stays = [i for i in range(index) if self.keep[i]]
        before = _last_staying(draft, self.value(stays[-1])) if stays else None
        if before is not None and _keeps_breaks(draft, before):
            end = _after_blank_lines(draft, end)
        draft.splices.delete(draft.source.line_start(self.heads[index]), end)

    def add(self, index: int, lines: list[str]) -> None:
        """Put lines behind a part, or before all."""
        draft, newline = self.draft, self.draft.source.newline
        if index < 0:
            text = newline.join(lines)[self.indent :] + newline + " " * self.indent
            draft.splices.insert(self.heads[0], text)
            return
        leaf = _last_staying(draft, self.value(index))
        at = draft.source.line_end(max(draft.ends.get(id(leaf), leaf.end), self.heads[index]))
        if is_literal(draft, leaf) and at == len(draft.text):
            _strip_final_break(draft, leaf)
        elif _keeps_breaks(draft, leaf):
            at = _after_value(draft, leaf, leaf.end)
            if draft.text[at - 1] in "\r\n":
                draft.splices.insert(at, "".join(line + newline for line in lines))
                return
        draft.splices.insert(at, "".join(newline + line for line in lines))


def heads(draft: Draft, node: Node) -> list[int]:
    """Where the parts begin: keys, or dashes, which the parser does not tell but for the first."""
    if node.kind == "mapping":
        for key in node.children[::2]:
            draft.after_colon(key)
        return [key.start for key in node.children[::2]]
    dash = re.compile(r"-(?=\s|$)", re.MULTILINE)
    at = node.start
    found: list[int] = []
    indent = draft.column(at) if draft.text[at] == "-" else None
    for item in node.children:
        match = dash.search(draft.text, at)
        while match and (found or indent is None) and not _is_dash(draft, match.start(), indent):
            match = dash.search(draft.text, match.end())
        if match is None or match.start() > item.start:
            raise PatchError("this list cannot be edited in place", line=draft.source.place(node.start)[0])
        indent = draft.column(match.start())
        found.append(match.start())
        at = max(item.end, match.end())
    return found


def _is_dash(draft: Draft, at: int, indent: int | None) -> bool:
    """Whether a dash is the first on its line, in the list's own column."""
    return draft.is_first_on_line(at) and (indent is None or draft.column(at) == indent)


def _after_value(draft: Draft, node: Node, tail: int) -> int:
    """The line behind a value; the blank lines that ``|+`` counts as its own are part of it."""
    end = draft.source.next_line(tail)
    return _after_blank_lines(draft, end) if _keeps_breaks(draft, last(node)) else end


def _after_blank_lines(draft: Draft, offset: int) -> int:
    """The next line that holds something."""
    match = _BLANK_LINES.match(draft.text, offset)
    return match.end() if match else offset


def _after_own_comments(draft: Draft, offset: int, indent: int) -> int:
    """Behind the comments that are indented deeper than a key or dash, and so go with it."""
    while match := _COMMENT_LINES.match(draft.text, offset):
        if len(match["blanks"]) <= indent:
            break
        offset = match.end()
    return offset


def _last_staying(draft: Draft, node: Node) -> Node:
    """The node with which a node will end; removed ones are skipped, replaced ones not looked into."""
    while node.children and not node.style and id(node) not in draft.ends:
        values = node.children[1::2] if node.kind == "mapping" else node.children
        node = next(value for value in reversed(values) if id(value) not in draft.gone)
    return node


def is_literal(draft: Draft, node: Node) -> bool:
    """Whether a node is a block scalar, and stays one."""
    return node.kind == "scalar" and node.style in {"|", ">"} and id(node) not in draft.ends


def _keeps_breaks(draft: Draft, node: Node) -> bool:
    """Whether a node is a block scalar that counts the blank lines below as its own (``+``)."""
    match = _HEADER.search(draft.text, node.start) if is_literal(draft, node) else None
    return match is not None and match.group(1) == "+"


def _strip_final_break(draft: Draft, node: Node) -> None:
    """A block scalar that ends the file without a line break must not gain one from what is put behind it."""
    match = _HEADER.search(draft.text, node.start)
    if match and match.group(1) != "-":
        draft.splices.replace(match.start(1), match.end(1), "-")


def replace_in_block(draft: Draft, node: Node, new: Any, slot: Slot) -> None:
    """Another value behind a key or a dash."""
    is_collection = node.kind in {"mapping", "sequence"}
    draft.ends[id(node)] = node.end
    if is_block(new) and not (is_collection and node.style and node.children):
        _replace_by_lines(draft, node, new, slot)
        return
    quote = node.style if node.kind == "scalar" and node.style in {"'", '"'} and isinstance(new, str) else ""
    like = draft.scalar_text(node)
    text = inline(new) if is_block(new) else scalar(new, quote=quote) if quote else scalar_or_empty(new, like)
    if slot.kind == "item" or slot.key is None:
        draft.splices.replace(node.start, node.end, text if node.end > node.start else " " + text)
        return
    colon = draft.after_colon(slot.key)
    own_lines = draft.source.line_start(node.start) > colon
    if own_lines and is_collection and not node.style:
        draft.splices.insert(colon, " " + text)
        draft.ends[id(node)] = colon
        draft.splices.delete(draft.source.line_start(node.start), _after_value(draft, node, node.end))
    elif node.start == node.end:
        draft.splices.insert(colon, " " + text)
    else:
        draft.splices.replace(node.start, node.end, text)


def _replace_by_lines(draft: Draft, node: Node, new: Any, slot: Slot) -> None:
    newline = draft.source.newline
    if slot.kind == "item" or slot.key is None:
        indent = draft.column(node.start) + (node.end == node.start)
        text = newline.join(block(new, indent, draft.style))[indent:]
        draft.splices.replace(node.start, node.end, text if node.end > node.start else " " + text)
        return
    colon = draft.after_colon(slot.key)
    indent = slot.indent + (draft.style.dash if isinstance(new, list) else draft.style.step)
    lines = block(new, indent, draft.style)
    if draft.source.line_start(node.start) > colon:
        draft.splices.replace(draft.source.line_start(node.start), node.end, newline.join(lines))
        return
    end = max(colon, node.end)
    draft.splices.delete(colon, end)
    draft.splices.insert(draft.source.line_end(end), "".join(newline + line for line in lines))


def replace_root(draft: Draft, node: Node, new: Any) -> None:
    """Another mapping for the whole document, in place of its first entry; comments between entries stay."""
    newline = draft.source.newline
    own_line = draft.is_first_on_line(node.start)
    if node.style or not node.children:
        text = newline.join(block(new, 0, draft.style)) if new and own_line else inline(new)
        draft.splices.replace(node.start, node.end, text)
        return
    parts = Block(draft, node, [False] * (len(node.children) // 2), {})
    text = newline.join(block(new, parts.indent, draft.style))[parts.indent :] if new else "{}"
    draft.splices.replace(parts.heads[0], parts.tails[0], text)
    for index in range(1, len(parts.heads)):
        parts.remove(index)
