"""The repository that a file lies in, and whether another file lies outside of it, whatever links say."""

import os
from collections.abc import Iterable

from advisor.errors import InputError
from advisor.util import BOUND, lies_in


def repository_of(file: str) -> str:
    """The real path of the nearest folder above a file with a ``.git``, else of the folder that the file is in.

    It ends at the folder that all is confined to.
    """
    folder = os.path.realpath(os.path.dirname(os.path.abspath(file)))
    found, root = checkout_of(folder) or folder, BOUND.get()
    return root if root is not None and lies_in(found, root) else found


def checkout_of(folder: str) -> str | None:
    """The nearest folder from here upwards with a ``.git``."""
    current = folder
    while not os.path.exists(os.path.join(current, ".git")):
        parent = os.path.dirname(current)
        if parent == current:
            return None
        current = parent
    return current


def leads_out(path: str, searched: str | None = None) -> bool:
    """Whether a path in a checkout leads out of it, through a link of the file or of a folder on the way.

    Without a checkout, out of the folder that was ``searched`` for it, if one was.
    """
    root = checkout_of(os.path.dirname(os.path.abspath(path))) or searched
    return root is not None and not lies_in(os.path.realpath(root), path)


def refuse_links(files: Iterable[str]) -> None:
    """Nothing is written through a link that leads out of the repository: an ``InputError`` before the first file."""
    for file in files:
        if leads_out(file) or not lies_in(repository_of(file), file):
            message = "is a link to a file outside its repository; nothing was changed"
            raise InputError(message, file, remedy="name the file that it leads to")
