"""A DeepSpeed config wherever it stands: a JSON of its own, or a mapping inside the YAML."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor.documents import Document, Path, Span, as_path
from advisor.record import record


@record(eq=False)
class Section(Mapping[str, Any]):
    """The part of ``document`` below ``prefix``: a read-only mapping that knows its spans."""

    document: Document
    prefix: Path = ()
    outside: bool = False
    """Whether the file lies outside the YAML's repository: of what is in it, only names of keys may be said."""

    @property
    def file(self) -> str:
        """The file that it stands in."""
        return self.document.file

    @property
    def values_mapping(self) -> Mapping[str, Any]:
        """The mapping itself."""
        return self.document.at(self.prefix) if self.prefix else self.document.values_mapping

    def __getitem__(self, key: str) -> Any:
        return self.values_mapping[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_mapping)

    def __len__(self) -> int:
        return len(self.values_mapping)

    def path(self, path: str | Path) -> Path:
        """The path inside the whole document."""
        return (*self.prefix, *as_path(path))

    def at(self, path: str | Path, default: Any = None) -> Any:
        """The value at ``path``, or ``default``."""
        return self.document.at(self.path(path) if self.prefix else path, default)

    def has(self, path: str | Path) -> bool:
        """Whether there is a value at ``path``."""
        return self.document.has(self.path(path))

    def span(self, path: str | Path) -> Span | None:
        """Where the value at ``path`` stands."""
        return self.document.span(self.path(path))

    def key_span(self, path: str | Path) -> Span | None:
        """Where the key at ``path`` stands."""
        return self.document.key_span(self.path(path))
