"""Files that are no config yet: templates that wait to be rendered, and sweeps over the values of a config."""

import re
from dataclasses import replace

from advisor.documents import Document, Syntax, parse
from advisor.errors import InputError
from advisor.util import is_list, is_mapping

EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
PAIRED = "_"
"""Values of a sweep that belong together: axolotl/cli/utils/sweeps.py:36-38@0.19.0."""


def as_template(error: InputError, raw: bytes, *, named: bool) -> InputError:
    """The error of a broken file; for a template what it is, which is a note where nobody named the file."""
    syntax: Syntax = "json" if error.file.lower().endswith(".json") else "yaml"
    if not is_template(raw, syntax):
        return error
    message = f"is a template, and no {syntax.upper()} before it is rendered"
    return replace(error, message=message, remedy="render it, and check what comes out", note=not named)


def is_template(raw: bytes, syntax: Syntax) -> bool:
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


def sweep_error(document: Document, *, named: bool) -> InputError | None:
    """What is said of a sweep, which is a note where nobody named the file; None for anything else."""
    if not is_sweep(document):
        return None
    message = "is a sweep: each key has a list of values for `axolotl train --sweep`"
    return InputError(message, document.file, 1, remedy="check the config that it varies", note=not named)


def is_sweep(document: Document) -> bool:
    """Whether every key has a list, one of them where axolotl's schema takes none."""
    if document.syntax != "yaml" or not document or not all(is_list(value) for value in document.values()):
        return False
    from advisor.schemas import axolotl_keys, fits

    rows = axolotl_keys().rows(axolotl_keys().root)
    paired = document.get(PAIRED)
    if is_list(paired) and paired and all(is_mapping(item) and item.keys() & rows.keys() for item in paired):
        return True
    return any(key in rows and not fits(rows[key]["kinds"], value) for key, value in document.items())
