"""What comments say to the advisor."""

import re
from bisect import bisect_right
from functools import lru_cache

from advisor.documents.node import Node, walk
from advisor.documents.source import Source
from advisor.record import record
from advisor.util import regex

_COMMENT = regex(r"(?:^|(?<=\s))#[ \t]*advisor:[ \t]*(?P<body>[^\r\n]*)", re.MULTILINE)
_IGNORE = regex(r"(?P<name>ignore|file-ignore)\[(?P<argument>[^\]]*)\](?:[\s:]\s*(?P<reason>.*))?$")
_ID = regex(r"[\w-]")
_SETTING = regex(r"(?P<name>gpus|model)[ \t]*=[ \t]*(?P<argument>\S.*)")


@record
class Directive:
    """One comment ``# advisor: ...``.

    ``name`` is ``gpus`` or ``model`` (``argument``: the rest of the line), ``ignore`` or ``file-ignore`` (``argument``:
    the ids, ``reason``: what follows them), or ``malformed`` (``argument``: all of it). ``own_line``: nothing
    stands before it on its line.
    """

    name: str
    argument: str
    reason: str
    line: int
    own_line: bool


@lru_cache(maxsize=8)
def directives_in(source: Source) -> tuple[Directive, ...]:
    """The directives of a YAML in order. A ``#`` inside a quoted or block scalar begins no comment."""
    text = source.text
    if source.syntax == "json" or "advisor:" not in text.text:
        return ()
    hidden = [_content(node, text.text) for node in walk(source.root) if node.kind == "scalar"] if source.root else []
    hidden = sorted(span for span in hidden if span[1] > span[0])
    starts = [start for start, _ in hidden]
    found: list[Directive] = []
    for match in _COMMENT.finditer(text.text):
        before = bisect_right(starts, match.start()) - 1
        if before >= 0 and match.start() < hidden[before][1]:
            continue
        line_start = text.line_start(match.start())
        own_line = not text.text[line_start : match.start()].strip()
        found.append(_directive(match["body"].strip(), text.place(match.start())[0], own_line))
    return tuple(found)


def _content(node: Node, text: str) -> tuple[int, int]:
    """Where a scalar's own characters lie; a comment may stand in the first line of a block scalar."""
    if node.style in {"|", ">"}:
        newline = text.find("\n", node.start, node.end)
        return (newline if newline >= 0 else node.end), node.end
    return node.start, node.end


def _directive(body: str, line: int, own_line: bool) -> Directive:
    setting, ignore = _SETTING.fullmatch(body), _IGNORE.fullmatch(body)
    if setting:
        return Directive(setting["name"], setting["argument"].strip(), "", line, own_line)
    if ignore and _ID.search(ignore["argument"]):
        return Directive(ignore["name"], ignore["argument"].strip(), (ignore["reason"] or "").strip(), line, own_line)
    return Directive("malformed", body, "", line, own_line)
