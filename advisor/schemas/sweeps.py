"""Sweeps over the values of a config: lists where axolotl takes one value."""

from advisor.documents import Document
from advisor.documents.discovery import is_config
from advisor.errors import InputError
from advisor.schemas import axolotl_keys, fits
from advisor.util import is_list, is_mapping

PAIRED = "_"
"""Values of a sweep that belong together: axolotl/cli/utils/sweeps.py:36-38@0.19.0."""


def _sweep_error(document: Document, *, named: bool) -> InputError | None:
    """What is said of a sweep, which is a note where nobody named the file; None for anything else."""
    if not _is_sweep(document):
        return None
    message = "is a sweep: each key has a list of values for `axolotl train --sweep`"
    return InputError(message, document.file, 1, remedy="check the config that it varies", note=not named)


def _is_sweep(document: Document) -> bool:
    """Whether every key has a list, one of them where axolotl's schema takes none."""
    if document.syntax != "yaml" or not document or not all(is_list(value) for value in document.values()):
        return False
    rows = axolotl_keys().rows(axolotl_keys().root)
    paired = document.get(PAIRED)
    if is_list(paired) and paired and all(is_mapping(item) and item.keys() & rows.keys() for item in paired):
        return True
    return any(key in rows and not fits(rows[key]["kinds"], value) for key, value in document.items())


def as_config(found: Document | InputError | None, *, named: bool) -> Document | InputError | None:
    """What was found if it is a config or a DeepSpeed JSON; what is said of a sweep; None for any other YAML."""
    if not isinstance(found, Document) or found.syntax == "json":
        return found
    return _sweep_error(found, named=named) or (found if is_config(found) else None)
