"""Places of the advisor as places of the protocol: lines from 0, columns in UTF-16 units, files as URIs."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from advisor.documents import Edit
from advisor.engine.finding import Place

lsp: Any = import_module("lsprotocol.types")
uris: Any = import_module("pygls.uris")


def uri_of(path: str) -> str:
    """A file as a URI."""
    return uris.from_fs_path(os.path.abspath(path))


def path_of(uri: str) -> str:
    """A URI as a path; a text that was never saved is one of the working directory."""
    found = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return found or os.path.abspath(os.path.basename(uri.partition(":")[2]) or "untitled.yaml")


def units(text: str) -> int:
    """How many UTF-16 units a text takes."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def column_of(row: str, character: int) -> int:
    """Which character of a row stands at so many UTF-16 units; the end where it has fewer."""
    return len(row.encode("utf-16-le", "surrogatepass")[: 2 * character].decode("utf-16-le", "replace"))


def as_text(line: str) -> str:
    """A message in which no name is a link: editors make some of ``[words](command:...)``."""
    return line.replace("](", "] (")


def _position_at(raw: bytes, offset: int) -> Any:
    """The position of a byte."""
    start = raw.rfind(b"\n", 0, offset) + 1
    return lsp.Position(raw.count(b"\n", 0, start), units(raw[start:offset].decode(errors="replace")))


def range_of(place: Place, text: str) -> Any:
    """The range of a finding; one about the whole file is its first line."""
    lines = rows_of(text)
    if not place.line:
        return lsp.Range(lsp.Position(0, 0), lsp.Position(0, units(lines[0])))
    end_line = place.end_line or place.line
    end_column = place.end_column if place.end_column else place.column + 1
    return lsp.Range(
        _position_in(lines, place.line, max(1, place.column)), _position_in(lines, end_line, max(1, end_column))
    )


@lru_cache(maxsize=8)
def rows_of(text: str) -> Sequence[str]:
    """The lines of a text as the protocol counts them; split once for all findings."""
    return text.split("\n")


def _position_in(lines: Sequence[str], line: int, column: int) -> Any:
    """The position of a character, both from 1."""
    row = lines[line - 1] if line <= len(lines) else ""
    return lsp.Position(line - 1, units(row[: column - 1]))


def insertion(line: int, column: int, text: str) -> Any:
    """Text put in at a place."""
    place = lsp.Position(line, column)
    return lsp.TextEdit(lsp.Range(place, place), text)


def new_files(edits: tuple[Edit, ...]) -> dict[str, str]:
    """The files that edits make, by URI, with their text."""
    return {uri_of(edit.file): edit.text for edit in edits if edit.create}


def workspace_edit(edits: tuple[Edit, ...], texts: Mapping[str, str]) -> Any:
    """Edits of bytes as one edit of the editor, which makes new files too."""
    changes: list[Any] = []
    for file in dict.fromkeys(edit.file for edit in edits):
        own = [edit for edit in edits if edit.file == file]
        uri = uri_of(file)
        if any(edit.create for edit in own):
            changes.append(lsp.CreateFile(uri, options=lsp.CreateFileOptions(ignore_if_exists=True)))
        raw = texts.get(file, "").encode()
        said = [
            lsp.TextEdit(lsp.Range(_position_at(raw, edit.start), _position_at(raw, edit.end)), edit.text)
            for edit in own
        ]
        changes.append(lsp.TextDocumentEdit(lsp.OptionalVersionedTextDocumentIdentifier(uri), said))
    return lsp.WorkspaceEdit(document_changes=changes)
