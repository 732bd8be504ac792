"""The entries of a config's lists of datasets."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor.documents import Document
from advisor.util import is_list, is_mapping


def entries_of(config: Document, key: str = "datasets") -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Each entry that is a mapping, with its path: ``datasets.0``."""
    listed = config.get(key)
    for number, entry in enumerate(listed if is_list(listed) else ()):
        if is_mapping(entry):
            yield f"{key}.{number}", entry
