"""Files that are no YAML or JSON yet: templates that wait to be rendered."""

import re

from advisor.documents import Syntax, parse
from advisor.errors import InputError
from advisor.util import regex

EXPRESSION = regex(r"\{\{.*?\}\}", re.DOTALL)
STATEMENT = regex(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)


def as_template(error: InputError, raw: bytes, *, named: bool) -> InputError:
    """The error of a broken file; for a template what it is, which is a note where nobody named the file."""
    syntax: Syntax = "json" if error.file.lower().endswith(".json") else "yaml"
    if not _is_template(raw, syntax):
        return error
    message = f"is a template, and no {syntax.upper()} before it is rendered"
    remedy = "render it, and check what comes out"
    return InputError(message, error.file, error.line, error.column, remedy, note=not named)


def _is_template(raw: bytes, syntax: Syntax) -> bool:
    """Whether a text has Jinja's braces in it, and is sound once something stands in their place."""
    text = raw.decode(errors="replace")
    filled = EXPRESSION.sub("0", STATEMENT.sub("", text))
    if filled == text:
        return False
    try:
        parse(filled.encode(), "", syntax)
    except InputError:
        return False
    return True
