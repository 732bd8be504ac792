"""``--output-dir``: the runs as if their files lay in another folder, so that what is written lands there."""

import os
from collections.abc import Sequence

from advisor.documents import Document
from advisor.documents.repository import lies_in
from advisor.opening import LoadedRun
from advisor.record import record, replace
from advisor.run import Run
from advisor.run.deepspeed import Section


@record(eq=False)
class _MovedRun:
    """A run with its files in another folder, and those files: they are written there, changed or not."""

    opened: LoadedRun
    documents: tuple[Document, ...]


def moved_to(folder: str, opened: Sequence[LoadedRun]) -> list[_MovedRun]:
    """The runs in ``folder``, in the folders that they lie in below what they have in common."""
    above = [os.path.dirname(os.path.abspath(each_run.run.config.file)) for each_run in opened]
    root = os.path.commonpath(above) if above else ""
    return [
        moved(each_run, os.path.join(folder, os.path.relpath(place, root)))
        for each_run, place in zip(opened, above, strict=True)
    ]


def moved(opened: LoadedRun, folder: str) -> _MovedRun:
    """One run with its YAML in ``folder``, and its JSON too if that is looked for next to the YAML."""
    run, section = opened.run, opened.run.deepspeed
    config = replace(run.config, file=os.path.normpath(os.path.join(folder, os.path.basename(run.config.file))))
    if section is not None and run.is_json_alone:
        document = replace(section.document, file=config.file)
        return _with_files(opened, replace(run, config=config, deepspeed=Section(document)), document)
    if section is not None and (target := _next_to_it(run, section, folder)):
        document = replace(section.document, file=target)
        section = replace(section, document=document)
        return _with_files(opened, replace(run, config=config, deepspeed=section), config, document)
    if section is not None and section.prefix:
        section = replace(section, document=config)
    return _with_files(opened, replace(run, config=config, deepspeed=section, deepspeed_editable=False), config)


def _with_files(opened: LoadedRun, run: Run, *documents: Document) -> _MovedRun:
    """The moved run with its files."""
    return _MovedRun(replace(opened, run=run), documents)


def _next_to_it(run: Run, section: Section, folder: str) -> str:
    """Where a JSON goes that is looked for next to its YAML; empty where axolotl finds it without the YAML."""
    if section.prefix or section.outside or section.document.is_new or run.deepspeed_named is None:
        return ""
    own = os.path.dirname(os.path.abspath(run.config.file))
    by_axolotl = os.path.exists(os.path.join(run.working_directory, run.deepspeed_named))
    if by_axolotl or not lies_in(os.path.realpath(own), section.file):
        return ""
    return os.path.normpath(os.path.join(folder, run.deepspeed_named))
