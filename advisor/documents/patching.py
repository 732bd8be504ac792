"""Pending changes -> splices of the text; and the text of files that are new."""

import json
import re
from collections.abc import Iterable
from typing import Any

from advisor.documents.changes import Change, PatchError
from advisor.documents.differ import origins, reconcile
from advisor.documents.draft import Draft, Slot
from advisor.documents.source import Source, Syntax
from advisor.documents.splices import Splice, Splices
from advisor.documents.yaml_writer import Style, block
from advisor.util import regex

_END_MARK = regex(r"^\.\.\.", re.MULTILINE)


def splices_for(source: Source, new: dict[str, Any], changes: Iterable[Change]) -> list[Splice]:
    """What makes ``source`` hold ``new``. The changes tell only which keys were renamed."""
    if source.root is None:
        return _filled(source, new)
    draft = Draft(source.text, source.root, source.syntax == "json", origins(changes))
    reconcile(draft, source.root, new, Slot("root"), ())
    return draft.splices.settled(source.text.text)


def _filled(source: Source, new: dict[str, Any]) -> list[Splice]:
    """Values for a YAML that held none."""
    text, newline = source.text.text, source.text.newline
    if not new:
        return []
    end = _END_MARK.search(text)
    at = end.start() if end else len(text)
    lead = newline if at and text[at - 1] not in "\r\n" else ""
    splices = Splices()
    splices.insert(at, lead + "".join(line + newline for line in block(new, 0, Style())))
    return splices.settled(text)


def fresh_text(syntax: Syntax, values: dict[str, Any]) -> str:
    """A new file: JSON indented by two, or YAML in block style."""
    if syntax == "yaml":
        return "".join(f"{line}\n" for line in block(values, 0, Style())) if values else "{}\n"
    try:
        text = json.dumps(values, indent=2, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(values, indent=2)
    except (TypeError, ValueError) as error:
        raise PatchError(f"cannot be written as JSON: {error}") from error
    return text + "\n"
