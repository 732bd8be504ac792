"""Paths on the command line -> documents: files as they are, folders searched for axolotl configs."""

import os
from collections.abc import Iterator, Sequence

from advisor.documents import Document, parse, read
from advisor.errors import InputError
from advisor.project import is_config

SUFFIXES = (".yaml", ".yml")


def gathered(paths: Sequence[str]) -> Iterator[Document | InputError]:
    """The axolotl configs among ``paths``, and what could not be read, in order, each once."""
    seen: set[str] = set()
    for path in paths:
        for file, named in files_of(path):
            real = os.path.realpath(file)
            if real in seen:
                continue
            seen.add(real)
            found = opened(file, named)
            if found is not None:
                yield found


def files_of(path: str) -> Iterator[tuple[str, bool]]:
    """A file, or the YAMLs below a folder; and whether it was named outright."""
    if not os.path.isdir(path):  # noqa: PTH112
        yield path, True
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(files):
            if name.endswith(SUFFIXES):
                yield os.path.join(folder, name), False  # noqa: PTH118


def opened(file: str, named: bool) -> Document | InputError | None:
    """The document if it is an axolotl config.

    A file found in a folder that cannot be read counts only if it looks like one.
    """
    if not named and not looks_like_config(file):
        return None
    try:
        document = read(file)
    except InputError as error:
        return error
    return document if is_config(document) else None


def looks_like_config(file: str) -> bool:
    """Whether the text names a base model anywhere."""
    try:
        with open(file, "rb") as stream:  # noqa: PTH123
            return b"base_model" in stream.read(1 << 20)
    except OSError:
        return True


def from_stdin(raw: bytes) -> Document:
    """Standard input as a YAML."""
    return parse(raw, "<stdin>", "yaml")
