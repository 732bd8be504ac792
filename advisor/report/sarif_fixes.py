"""Edits as SARIF says them: text that gives way in files that are there (2.1.0, 3.55 to 3.57)."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from advisor.documents import Edit
from advisor.engine.finding import Finding
from advisor.report.fingerprint import uri
from advisor.report.snippet import lines_of
from advisor.report.wording import SAFETY


def fixes(finding: Finding, texts: Mapping[str, str], root_variable: str) -> list[dict[str, Any]]:
    """The fix; none for a step that follows another, nor where a file is made, of which SARIF knows nothing."""
    fix, follows = finding.fix, (finding.step or 1) > 1 or finding.sequence is not None
    if fix is None or follows or any(edit.create or edit.file not in texts for edit in fix.edits):
        return []
    by_file = groupby(fix.edits, lambda edit: edit.file)
    changes = [change(file, list(edits), texts[file], root_variable) for file, edits in by_file]
    return [{"description": {"text": SAFETY[fix.safe]}, "artifactChanges": changes}] if changes else []


def change(file: str, edits: Sequence[Edit], text: str, root_variable: str) -> dict[str, Any]:
    """An artifactChange: all replacements in one file."""
    raw = text.encode()
    replacements = [
        {"deletedRegion": region(raw, edit), **({"insertedContent": {"text": edit.text}} if edit.text else {})}
        for edit in edits
    ]
    return {"artifactLocation": {"uri": uri(file, root_variable)}, "replacements": replacements}


def region(raw: bytes, edit: Edit) -> dict[str, int]:
    """The bytes of an edit as lines and columns; of an insertion both ends are the same place."""
    (start_line, start_column), (end_line, end_column) = place(raw, edit.start), place(raw, edit.end)
    return {"startLine": start_line, "startColumn": start_column, "endLine": end_line, "endColumn": end_column}


def place(raw: bytes, offset: int) -> tuple[int, int]:
    """Line and column, 1-based, of a byte."""
    rows = lines_of(raw[:offset].decode())
    return len(rows), len(rows[-1]) + 1
