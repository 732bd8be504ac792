"""Text -> values that know their place in the file; changes -> the smallest edits of that text."""

from advisor.documents.changes import (
    Change,
    Edit,
    PatchError,
    Path,
    Remove,
    Rename,
    Set,
    Span,
    applied,
    as_path,
)
from advisor.documents.directives import Directive
from advisor.documents.document import Document, new_document, parse
from advisor.documents.files import read, write_all
from advisor.documents.source import Syntax

__all__ = [
    "Change",
    "Directive",
    "Document",
    "Edit",
    "PatchError",
    "Path",
    "Remove",
    "Rename",
    "Set",
    "Span",
    "Syntax",
    "applied",
    "as_path",
    "new_document",
    "parse",
    "read",
    "write_all",
]
