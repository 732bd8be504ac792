"""The runs of a call: every config among its paths, and the DeepSpeed JSONs that none of them names."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.documents import Document
from advisor.documents.discovery import candidates, from_stdin
from advisor.documents.discovery import opened as opened_file
from advisor.documents.excluding import Excluded
from advisor.errors import InputError
from advisor.opening import Context, LoadedRun, json_of, left_alone, open_json, open_run
from advisor.progress import doing, each, shown
from advisor.report.terminal import colored
from advisor.schemas.sweeps import as_config
from advisor.session import Session
from advisor.streams import aside

if TYPE_CHECKING:
    from advisor.cli.changed_since import Changed

Opener = Callable[[Document, Context], LoadedRun]


def opened_runs(
    paths: Sequence[str], session: Session, changed: "Changed | None" = None
) -> tuple[list[InputError], list[LoadedRun]]:
    """The runs of all paths, or of those that changed, and what could not be read; the errors are reported at once."""
    with shown():
        found = list(opening(paths, session, changed))
    errors = [each_found for each_found in found if isinstance(each_found, InputError)]
    opened = [each_found for each_found in found if isinstance(each_found, LoadedRun)]
    tell(errors)
    if not found:
        aside(nothing(changed))
    return errors, opened


def opening(
    paths: Sequence[str], session: Session, changed: "Changed | None" = None
) -> Iterator[LoadedRun | InputError]:
    """The runs one after the other, so that none need stay, then the JSONs that none of them names."""
    jsons: list[Document] = []
    named: set[str] = set()
    for found in found_in(paths, changed, session.excluded):
        if isinstance(found, Document) and found.syntax == "json":
            jsons.append(found)
            continue
        opened = found if isinstance(found, InputError) else attempted(open_run, found, session.context)
        if isinstance(opened, LoadedRun):
            named.add(json_of(opened))
        yield opened
    for document in left_alone(jsons, named):
        yield attempted(open_json, document, session.context)


def found_in(paths: Sequence[str], changed: "Changed | None", excluded: Excluded) -> Iterator[Document | InputError]:
    """Configs and JSONs in order, each said while it is worked on; ``-`` is standard input."""
    if "-" in paths:
        yield from_stdin(sys.stdin.buffer.read())
        return
    with doing("looking for configs"):
        files = list(candidates(paths, excluded))
    for file, named, searched in each(files, lambda file: file[0]):
        found = as_config(opened_file(file, named, searched), named=named)
        if found is not None and (changed is None or changed.concerns(found)):
            yield found


def attempted(opener: Opener, document: Document, context: Context) -> LoadedRun | InputError:
    """The run of a document, or what is wrong with it."""
    try:
        return opener(document, context)
    except InputError as error:
        return error


def tell(errors: Sequence[InputError]) -> None:
    """The errors on standard error, each once: a JSON may be named by many."""
    from advisor.report import render_error

    once = {(os.path.realpath(error.file), error.line, error.column, error.message): error for error in errors}
    for error in once.values():
        aside(render_error(error, color=colored(sys.stderr)))


def nothing(changed: "Changed | None") -> str:
    """Why there is nothing to check."""
    if changed is not None:
        return f"nothing to check: no config here has changed since {changed.revision}"
    return "nothing to check: no axolotl config found (looked for YAML with `base_model`)"
