"""The runs of a call: every config among its paths, and the DeepSpeed JSONs that none of them names."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from advisor.alone import left_alone, open_json
from advisor.cli import colored
from advisor.commands.asked import Asked
from advisor.documents import Document
from advisor.errors import InputError
from advisor.gather import from_stdin, gathered
from advisor.progress import doing, each, shown
from advisor.project import Context, Opened, open_run

if TYPE_CHECKING:
    from advisor.changed import Changed

Opener = Callable[[Document, Context], Opened]


def opened_runs(
    paths: Sequence[str], asked: Asked, changed: "Changed | None" = None
) -> tuple[list[InputError], list[Opened]]:
    """The runs of all paths, or of those that changed, and what could not be read; the errors are told at once."""
    with shown():
        with doing("looking for configs"):
            found = list(found_in(paths, changed))
        errors = [each_found for each_found in found if isinstance(each_found, InputError)]
        documents = [each_found for each_found in found if isinstance(each_found, Document)]
        opened = list(opened_with(open_run, [d for d in documents if d.syntax == "yaml"], asked.context, errors))
        alone = left_alone((d for d in documents if d.syntax == "json"), opened)
        opened += opened_with(open_json, alone, asked.context, errors)
    tell(errors)
    if not errors and not opened:
        click.echo(nothing(changed), err=True)
    return errors, opened


def found_in(paths: Sequence[str], changed: "Changed | None") -> Iterator[Document | InputError]:
    """Configs and JSONs in order; ``-`` is standard input."""
    if "-" in paths:
        yield from_stdin(sys.stdin.buffer.read())
        return
    found = gathered(paths)
    yield from found if changed is None else (each_found for each_found in found if changed.concerns(each_found))


def opened_with(
    opener: Opener, documents: Sequence[Document], context: Context, errors: list[InputError]
) -> Iterator[Opened]:
    """The runs of documents; what is wrong with them goes to ``errors``."""
    for document in each(documents, lambda document: document.file):
        try:
            yield opener(document, context)
        except InputError as error:
            errors.append(error)


def tell(errors: Sequence[InputError]) -> None:
    """The errors on standard error, each once: a JSON may be named by many."""
    from advisor.report import render_error

    once = {(os.path.realpath(error.file), error.line, error.column, error.message): error for error in errors}
    for error in once.values():
        click.echo(render_error(error, color=colored(sys.stderr)), err=True)


def nothing(changed: "Changed | None") -> str:
    """Why there is nothing to check."""
    if changed is not None:
        return f"nothing to check: no config here has changed since {changed.revision}"
    return "nothing to check: an axolotl config is a YAML with a `base_model`"
