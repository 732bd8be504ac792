"""Edits inside ``{...}`` and ``[...]``: YAML's flow style, and all of JSON."""

from typing import Any

from advisor.documents.draft import Additions, Draft, Slot
from advisor.documents.node import Node
from advisor.documents.yaml_writer import inline, is_block, scalar
from advisor.util import regex

_COMMA = regex(r"(?:\s|#[^\r\n]*)*,")
_NOTHING_MORE = regex(r"\s*(?:#.*)?$")


class Flow:
    """One flow collection under change."""

    def __init__(self, draft: Draft, node: Node, keep: list[bool], additions: Additions) -> None:
        self.draft, self.node, self.keep, self.additions = draft, node, keep, additions
        pairs = node.entries if node.kind == "mapping" else [(item, item) for item in node.children]
        self.parts = [(key.start, max(key.end, value.end)) for key, value in pairs]
        self.commas = [self.comma(end) for _, end in self.parts]
        self.kept = [index for index, stays in enumerate(keep) if stays]
        self.trails = self.commas[-1] is not None

    def comma(self, end: int) -> int | None:
        """Where the comma behind an entry stands."""
        match = _COMMA.match(self.draft.text, end, self.node.end - 1)
        return match.end() - 1 if match else None

    def edit(self) -> None:
        """Commas so that they are right; then what goes, and what comes."""
        for index, stays in enumerate(self.keep):
            if not stays:
                self.remove(index)
        for index in self.kept:
            self.settle_comma(index)
        for index, pairs in self.additions.items():
            self.add(index, list(pairs))

    def follows(self, index: int) -> bool:
        """Whether an entry that stays, or a trailing comma, comes behind ``index`` and its additions."""
        return index < self.kept[-1] or self.trails

    def settle_comma(self, index: int) -> None:
        """A comma behind an entry that stays where one is due, and none else."""
        comma, needed = self.commas[index], self.follows(index) or index in self.additions
        if needed and comma is None:
            end = self.parts[index][1]
            # libyaml takes `:,` for the middle of a word.
            self.draft.splices.insert(end, " ," if self.draft.text[end - 1] == ":" else ",")
        elif comma is not None and not needed:
            self.draft.splices.delete(comma, comma + 1)

    def tail(self, index: int) -> int:
        """Behind an entry and its comma."""
        comma = self.commas[index]
        return self.parts[index][1] if comma is None else comma + 1

    def has_own_lines(self, index: int) -> bool:
        """Whether nothing but a comment shares an entry's lines."""
        rest = self.draft.rest_of_line(self.tail(index))
        return self.draft.is_first_on_line(self.parts[index][0]) and bool(_NOTHING_MORE.match(rest))

    def remove(self, index: int) -> None:
        """Take out an entry with its comma: whole lines where they are its own."""
        draft, start, tail = self.draft, self.parts[index][0], self.tail(index)
        if self.has_own_lines(index):
            draft.splices.delete(draft.source.line_start(start), draft.source.next_line(tail))
        elif index > self.kept[0]:
            blanks = len(draft.text[:start]) - len(draft.text[:start].rstrip(" \t"))
            draft.splices.delete(start - blanks, tail)
        else:
            rest = draft.text[tail : self.node.end]
            draft.splices.delete(start, tail + len(rest) - len(rest.lstrip(" \t")))

    def add(self, index: int, pairs: list[tuple[Any, Any]]) -> None:
        """Put entries behind one that stays, on lines of their own if that has them."""
        draft, near = self.draft, max(index, 0)
        start = self.parts[near][0]
        own, prefix = self.has_own_lines(near), draft.indentation(start)
        texts = [self.pair(key, value, prefix if own else None) for key, value in pairs]
        gap = draft.source.newline + prefix if own else self.gap()
        if index < 0:
            draft.splices.insert(start, "".join(f"{text},{gap}" for text in texts))
            return
        at = draft.source.line_end(self.tail(near)) if own else self.tail(near)
        end = "," if self.follows(index) else ""
        draft.splices.insert(at, gap + f",{gap}".join(texts) + end)

    def gap(self) -> str:
        """What this collection puts behind a comma."""
        comma = self.commas[0]
        dense = self.draft.is_json and comma is not None and not self.draft.text[comma + 1].isspace()
        return "" if dense else " "

    def pair(self, key: Any, value: Any, prefix: str | None) -> str:
        """The text of a new entry."""
        draft = self.draft
        if not draft.is_json:
            written = inline(value)
            return written if self.node.kind == "sequence" else f"{scalar(key, flow=True)}: {written}"
        written = draft.json_text(value, prefix)
        if self.node.kind == "sequence":
            return written
        sibling_key, sibling = self.node.entries[0]
        return draft.json_text(key, None) + draft.text[sibling_key.end : sibling.start] + written


def replace_in_flow(draft: Draft, node: Node, new: Any, slot: Slot) -> None:
    """Another value for a node inside flow style."""
    if draft.is_json:
        begin = slot.key.start if slot.key else node.start
        prefix = draft.indentation(begin) if draft.is_first_on_line(begin) else None
        draft.splices.replace(node.start, node.end, draft.json_text(new, prefix))
        return
    quote = node.style if node.style in {"'", '"'} and isinstance(new, str) else ""
    written = inline(new) if is_block(new) else _inline_scalar(new, quote, draft.scalar_text(node))
    if node.start == node.end:
        written = (" " if draft.text[node.start - 1] == ":" else ": ") + written
    draft.splices.replace(node.start, node.end, written)


def _inline_scalar(value: Any, quote: str, like: str) -> str:
    """A scalar or empty collection for flow style."""
    if isinstance(value, (str, float)):
        return scalar(value, flow=True, quote=quote, like=like)
    return inline(value)
