"""The DeepSpeed JSON that a YAML means, and whether an edit may land in it."""

import os
from collections.abc import Container, Iterable

from advisor.documents import Document, new_document, parse, read
from advisor.documents.repository import checkout_of, lies_in, repository_of
from advisor.errors import InputError
from advisor.opening.context import Context, LoadedRun
from advisor.record import replace
from advisor.run.deepspeed import Section, shipped
from advisor.run.deepspeed.locate import deepspeed_path, is_own


def deepspeed_for(config: Document, context: Context) -> tuple[Section | None, bool]:
    """The DeepSpeed config that the YAML means, and whether an edit may land in its file."""
    named = config.get("deepspeed")
    if isinstance(named, dict):
        return Section(config, ("deepspeed",)), True
    if not isinstance(named, str) or not named:
        return None, False
    path = deepspeed_path(config, named, context.working_directory, context.buffers)
    if path is not None:
        section = _deepspeed_in(path, config, named, context)
        return section, is_own(config, section)
    values = shipped(named)
    return (Section(new_document(named, "json", values)), False) if values else (None, False)


def _deepspeed_in(path: str, config: Document, named: str, context: Context) -> Section:
    """The DeepSpeed config in a file. Why one outside the repository cannot be read is not said: it would quote it."""
    nothing = Section(new_document(path, "json", {}))
    try:
        unsaved = context.buffers.at(path)
        section = Section(read(path) if unsaved is None else parse(unsaved, path, "json"))
    except InputError as error:
        if _is_outside(config, named, nothing, context.working_directory):
            raise unshown(config) from error
        raise
    return replace(section, outside=_is_outside(config, named, section, context.working_directory))


def unshown(config: Document) -> InputError:
    """What is said of a DeepSpeed config outside the repository that cannot be used."""
    span = config.span("deepspeed")
    line, column = (span.line, span.column) if span else (0, 0)
    message = "`deepspeed` names a file outside the repository that is not a DeepSpeed config; its content is not shown"
    return InputError(message, config.file, line, column, "name a file in the repository, or check that file itself")


def _is_outside(config: Document, named: str, found: Section, working_directory: str) -> bool:
    """Whether a DeepSpeed JSON is somebody else's: outside the YAML's repository, and not as axolotl ships it.

    Without a repository, a plain path from the working directory, where axolotl looks, is inside too.
    """
    root = repository_of(config.file)
    if lies_in(root, found.file) or dict(found) == shipped(os.path.basename(named)):
        return False
    plain = not os.path.isabs(named) and ".." not in named.replace(os.sep, "/").split("/")
    return not (plain and checkout_of(root) is None and lies_in(os.path.realpath(working_directory), found.file))


def json_of(opened: LoadedRun) -> str:
    """The real path of the JSON that a run has read; empty without one."""
    section = opened.run.deepspeed
    return os.path.realpath(section.file) if section is not None and not section.prefix else ""


def left_alone(documents: Iterable[Document], named: Container[str]) -> list[Document]:
    """The JSONs that none of the runs has read."""
    return [document for document in documents if os.path.realpath(document.file) not in named]
