"""A file's values, with their places, and the changes that wait to be written into it."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from advisor.documents.changes import (
    MISSING,
    Change,
    Edit,
    PatchError,
    Path,
    Span,
    applied,
    as_path,
    plain,
    value_at,
)
from advisor.documents.directives import Directive, directives_in
from advisor.documents.node import Text, same
from advisor.documents.source import Source, Syntax, locate, overridden, parsed
from advisor.documents.splices import Splice, spliced
from advisor.record import record, replace


@record(eq=False)
class Document(Mapping[str, Any]):
    """The top-level values of a YAML or JSON file, as PyYAML's safe loader and ``json.loads`` type them.

    ``values_mapping`` are the values after the ``pending`` changes; ``raw`` are the bytes on disk, to which
    all spans refer. ``is_new``: there is no such file on disk yet. The first ``given`` of the pending changes are a
    command line's: its values count, and are written nowhere.
    """

    file: str
    syntax: Syntax
    raw: bytes
    values_mapping: Mapping[str, Any]
    source: Source
    pending: tuple[Change, ...] = ()
    is_new: bool = False
    given: int = 0

    # A mapping, but one that is compared as the object that it is.
    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __getitem__(self, key: str) -> Any:
        return self.values_mapping[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_mapping)

    def __len__(self) -> int:
        return len(self.values_mapping)

    def __repr__(self) -> str:
        return f"Document({self.file!r}, {len(self)} keys, {len(self.pending)} pending)"

    @property
    def text(self) -> str:
        """``raw`` decoded, without its byte order mark."""
        return self.source.text.text

    @property
    def directives(self) -> tuple[Directive, ...]:
        """What the comments of a YAML say to the advisor."""
        return directives_in(self.source)

    def at(self, path: str | Path, default: Any = None) -> Any:
        """The value at ``path``, or ``default``."""
        found = value_at(self.values_mapping, path)
        return default if found is MISSING else found

    def has(self, path: str | Path) -> bool:
        """Whether there is a value at ``path``, be it null."""
        return value_at(self.values_mapping, path) is not MISSING

    def span(self, path: str | Path) -> Span | None:
        """Where the value at ``path`` stands in ``raw``; a merged-in one where it is written."""
        found = locate(self.source.root, as_path(path))
        return self.source.text.span(found[1].start, found[1].end) if found else None

    def key_span(self, path: str | Path) -> Span | None:
        """Where the key of ``path`` stands in ``raw``; None for list items."""
        found = locate(self.source.root, as_path(path))
        key = found[0] if found else None
        return self.source.text.span(key.start, key.end) if key else None

    @cached_property
    def overridden(self) -> tuple[tuple[Path, Span], ...]:
        """The keys that their mapping holds again further down, and so do not count: paths, and where they stand."""
        found = overridden(self.source.root) if self.source.root else ()
        return tuple((path, self.source.text.span(key.start, key.end)) for path, key in found)

    def changed(self, *changes: Change) -> "Document":
        """The same text with more changes to come. ``PatchError`` where a path has no place."""
        try:
            values = applied(self.values_mapping, changes)
        except PatchError as error:
            error.file = self.file
            raise
        return replace(self, values_mapping=values, pending=(*self.pending, *changes))

    def overlaid(self, *changes: Change) -> "Document":
        """The same file under the values of a command line."""
        changed = self.changed(*changes)
        return replace(changed, given=len(changed.pending))

    @cached_property
    def written(self) -> "Document":
        """The document without what the command line gives; itself where its other changes need that."""
        if not self.given:
            return self
        rest = self.pending[self.given :]
        try:
            return replace(self, values_mapping=applied(self.source.values, rest), pending=rest, given=0)
        except PatchError:
            return replace(self, given=0)

    def is_given(self, path: str | Path) -> bool:
        """Whether the command line gives the value at ``path``, or the mapping around it, or a part of it."""
        wanted = as_path(path)
        given = (as_path(change.path) for change in self.pending[: self.given])
        return any(wanted[: len(other)] == other[: len(wanted)] for other in given)

    def is_edited(self, path: str | Path) -> bool:
        """Whether a change that is still to be written touches what stands at ``path``."""
        wanted = as_path(path)
        ours = (as_path(change.path) for change in self.pending[self.given :])
        return any(wanted[: len(other)] == other[: len(wanted)] for other in ours)

    def edits(self) -> tuple[Edit, ...]:
        """The pending changes as the smallest edits of ``raw``; for a new file, one that creates it."""
        if self.given:
            return self.written.edits()
        if self.is_new and not self.raw:
            return (Edit(self.file, 0, 0, self.fresh, create=True),)
        to_byte = self.source.text.to_byte
        return tuple(Edit(self.file, to_byte(s.start), to_byte(s.end), s.text) for s in self.splices)

    def patched(self) -> bytes:
        """The file after its edits, read again: ``PatchError`` if it would not hold exactly the values."""
        return self.rebased().raw

    def rebased(self) -> "Document":
        """The document as its edits leave it, with nothing pending. ``PatchError`` as in ``patched``."""
        if self.given:
            return self.written.rebased()
        if not self.is_new and not self.pending:
            return self
        if self.is_new and not self.raw:
            raw = self.fresh.encode()
        else:
            text = self.source.text
            raw = self.raw[: text.bom] + spliced(text.text, self.splices).encode()
        try:
            result = parse(raw, self.file, self.syntax)
        except PatchError:
            raise
        except Exception as error:
            raise self.refusal(f"the edited text would not parse ({error})") from error
        more_doubles = self.syntax == "yaml" and len(result.overridden) > len(self.overridden)
        if more_doubles or not same(result.values_mapping, dict(self.values_mapping)):
            raise self.refusal("the edited text would not have the intended values")
        return replace(result, is_new=self.is_new)

    def refusal(self, reason: str) -> PatchError:
        """Says that this document cannot be edited."""
        return PatchError(f"cannot be patched: {reason}", self.file, remedy="make the change by hand")

    @cached_property
    def fresh(self) -> str:
        """The text of a new file."""
        from advisor.documents.patching import fresh_text

        return fresh_text(self.syntax, dict(self.values_mapping))

    @cached_property
    def splices(self) -> list[Splice]:
        """The edits in characters."""
        from advisor.documents.patching import splices_for

        try:
            return splices_for(self.source, dict(self.values_mapping), self.pending)
        except PatchError as error:
            error.file = self.file
            raise


def parse(raw: bytes, file: str, syntax: Syntax) -> Document:
    """The document of these bytes; ``file`` is what people call it. ``InputError`` names the fault."""
    source = parsed(raw, file, syntax)
    return Document(file, syntax, raw, source.values, source)


def new_document(file: str, syntax: Syntax, values: Mapping[str, Any]) -> Document:
    """A document that is not on disk yet."""
    return Document(file, syntax, b"", plain(values), Source(Text(""), syntax, {}), is_new=True)
