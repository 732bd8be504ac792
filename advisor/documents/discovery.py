"""Paths on the command line -> documents: files as they are, folders searched for configs."""

import os
from collections.abc import Iterator, Sequence

from advisor.documents import Document, parse, read
from advisor.documents.alone import MOST_BYTES, is_deepspeed, may_be_deepspeed
from advisor.errors import InputError
from advisor.opening import is_config

SUFFIXES = (".yaml", ".yml", ".json")


def gathered(paths: Sequence[str]) -> Iterator[Document | InputError]:
    """The axolotl configs and DeepSpeed JSONs among ``paths``, and what could not be read, in order, each once."""
    for file, named in candidates(paths):
        found = opened(file, named)
        if found is not None:
            yield found


def candidates(paths: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The files that may be configs, each once, and whether they were named outright."""
    seen: set[str] = set()
    # pre-commit names every YAML of a commit, whatever it is for.
    chosen = not os.environ.get("PRE_COMMIT")
    for path in paths:
        for file, named in files_of(path):
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield file, named and chosen


def files_of(path: str) -> Iterator[tuple[str, bool]]:
    """A file, or the YAMLs and JSONs below a folder; and whether it was named outright."""
    if not os.path.isdir(path):  # noqa: PTH112
        yield path, True
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(files):
            if name.endswith(SUFFIXES):
                yield os.path.join(folder, name), False  # noqa: PTH118


def opened(file: str, named: bool) -> Document | InputError | None:
    """The document if it is an axolotl config or a DeepSpeed JSON.

    A YAML found in a folder, and any JSON, that cannot be read counts only if it looks like one.
    """
    if not looks_like_config(file, named):
        return None
    try:
        document = read(file)
    except InputError as error:
        return error
    wanted = is_deepspeed(document) if document.syntax == "json" else is_config(document)
    return document if wanted else None


def looks_like_config(file: str, named: bool) -> bool:
    """Whether the text names a base model anywhere, or a JSON a key of DeepSpeed's."""
    is_json = file.lower().endswith(".json")
    if named and not is_json:
        return True
    try:
        with open(file, "rb") as stream:  # noqa: PTH123
            raw = stream.read(MOST_BYTES + 1)
    except OSError:
        return True
    return may_be_deepspeed(raw) if is_json else b"base_model" in raw


def from_stdin(raw: bytes) -> Document:
    """Standard input as a YAML."""
    return parse(raw, "<stdin>", "yaml")
