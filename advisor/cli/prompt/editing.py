"""``e``: the value as the user wants it, from ``$EDITOR``, checked like any other."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from advisor.cli.prompt.edit_buffer import Page, pages_of, sheet, texts_from
from advisor.cli.prompt.proposal import Proposal, fix_of
from advisor.documents import Change, Document, Remove, Set, new_document, parse
from advisor.documents import Path as KeyPath
from advisor.documents.node import same
from advisor.errors import InputError
from advisor.opening import Context, open_run
from advisor.record import replace
from advisor.run import Run
from advisor.run.build import rebuilt
from advisor.run.deepspeed import Section
from advisor.util import is_mapping

EDITORS = ("VISUAL", "EDITOR")
DEFAULT = "notepad" if os.name == "nt" else "vi"
READ_AGAIN = ("base_model", "base_model_config", "deepspeed")
"""Keys that name other files."""


def edited(proposal: Proposal, context: Context) -> Proposal | None:
    """The proposal with the user's own lines; None where they were left alone. ``InputError`` for what is wrong."""
    pages = pages_of(proposal.before, proposal.after)
    shown = sheet(pages)
    written = _from_editor(shown, Path(pages[0].new.file).suffix)
    if written == shown:
        return None
    after = _run_with(proposal, pages, texts_from(written, pages), context)
    known = {found.key for found in proposal.before.unreadable}
    for found in after.unreadable:
        if found.key not in known:
            raise InputError(found.message)
    fix = fix_of(proposal.before, after, proposal.fix.safe)
    if not fix.edits:
        raise InputError("your lines change nothing", remedy="answer n to leave the file as it is")
    fix = replace(fix, by_choice=proposal.fix.by_choice)
    return replace(proposal, finding=replace(proposal.finding, fix=fix), after=after, own=True)


def _from_editor(text: str, suffix: str) -> str:
    """What the user makes of a text."""
    command = next((value for name in EDITORS if (value := os.environ.get(name))), DEFAULT)
    with tempfile.TemporaryDirectory(prefix="advisor-") as folder:
        file = Path(folder) / f"edit{suffix}"
        file.write_text(text, encoding="utf-8", newline="\n")
        try:
            code = _waited_for([*shlex.split(command), str(file)])
        except (OSError, ValueError) as error:
            raise InputError(f"the editor `{command}` cannot be run: {error}", remedy="set EDITOR") from error
        if code != 0:
            raise InputError(f"the editor `{command}` ended with {code}", remedy="the edit is as it was")
        return file.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")


def _waited_for(command: Sequence[str]) -> int:
    """The editor's exit code. Ctrl-C is the editor's meanwhile."""

    def not_ours(_signal: int, _frame: FrameType | None) -> None:
        """Does nothing; to ignore the signal would be handed down to the editor."""

    before = signal.signal(signal.SIGINT, not_ours)
    try:
        return subprocess.Popen(command).wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _run_with(proposal: Proposal, pages: Sequence[Page], texts: Sequence[str], context: Context) -> Run:
    """The run that the user's texts describe."""
    after = proposal.after
    config, section = after.config, after.deepspeed
    for page, text in zip(pages, texts, strict=True):
        document = _with_text(page, text)
        if page.new is after.config:
            config = document
        else:
            section = Section(document)
    if not after.is_json_alone and any(named(config, key) != named(after.config, key) for key in READ_AGAIN):
        return open_run(config, context).run
    if section is not None and section.prefix:
        section = Section(config, section.prefix) if config.has(section.prefix) else None
    return rebuilt(after, config, section)


def named(config: Document, key: str) -> object:
    """What a key names; a mapping names nothing."""
    value = config.get(key)
    return None if is_mapping(value) else value


def _with_text(page: Page, text: str) -> Document:
    """The file as a text has it: as further changes of what it would be, so that renamed keys stay in their place."""
    values = parse(text.encode(), page.new.file, page.new.syntax).values_mapping
    if page.old is None:
        return new_document(page.new.file, page.new.syntax, values)
    return page.new.changed(*_changes_between(page.new.values_mapping, values, ()))


def _changes_between(old: Mapping[Any, Any], new: Mapping[Any, Any], above: KeyPath) -> Iterator[Change]:
    """What turns one mapping into another, each new key behind the one that it was written behind."""
    for key in old:
        if key not in new:
            yield Remove((*above, key))
    before: str | None = None
    for key, value in new.items():
        given = old.get(key)
        if is_mapping(given) and is_mapping(value) and value:
            yield from _changes_between(given, value, (*above, key))
        elif key not in old or not same(given, value):
            yield Set((*above, key), value, after=before)
        before = key if isinstance(key, str) else None
