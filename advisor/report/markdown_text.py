"""Text as Markdown and HTML: what a file says opens no tag, no link and no code, and mentions nobody."""

import re

from advisor.report.snippet import lines_of
from advisor.util import path_shown, printable, regex


def folded(title: str, body: str) -> str:
    """Shown on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def code(text: str, *, html: bool = False) -> str:
    """Text as code; as HTML inside a summary, where Markdown is not read, and where a mark could end code or cell."""
    shown = path_shown(text)
    if not html and not {"`", "|", "\\"} & set(shown):
        return f"`{shown}`"
    marks = re.sub(r"[^\w\s./-]|(?<=www)\.", lambda mark: f"&#{ord(mark.group())};", shown, flags=re.IGNORECASE)
    return f"<code>{marks}</code>"


SPAN = regex(r"(?<!`)(`{1,8})(?!`)([^`]+)\1(?!`)")
"""Code, where it closes and holds no backtick (CommonMark 0.31, 6.1, allows more)."""


NO_LINK = regex(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=(?<!\w)@)(?=\w)|(?<=[#!])(?=\d)", re.IGNORECASE)
"""Where an address, a mention or the number of an issue comes apart (GitHub Flavored Markdown 0.29, 6.9)."""


def escaped(text: str, *, links: bool = False) -> str:
    """A message as Markdown: what is not code cannot open code, a tag, a link, mention a person or break the line.

    ``links``: addresses may be ones, where the text is of a rule and holds nothing of a file.
    """
    flat = " ".join(printable(text).split())
    said, after = "", 0
    for found in SPAN.finditer(flat):
        said += plain(flat[after : found.start()], links=links) + found.group()
        after = found.end()
    return said + plain(flat[after:], links=links)


def plain(text: str, *, links: bool = False) -> str:
    """Text outside of code."""
    apart = text if links else NO_LINK.sub("\u200b", text)
    marked = re.sub(r"[\\`\[]", r"\\\g<0>", apart.replace("&", "&amp;").replace("<", "&lt;"))
    return marked.replace("\u200b", "&#8203;")


def fence_for(text: str) -> str:
    """Backticks, more than any run of them inside."""
    return "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def fenced(diff: str) -> str:
    """A diff in a fence that is longer than any run of backticks inside."""
    fence = fence_for(diff)
    rows = "\n".join(printable(row) for row in lines_of(diff.rstrip()))
    return f"{fence}diff\n{rows}\n{fence}"
