"""Paths as a code host knows them: relative to the checkout, with forward slashes."""

import os
from urllib.parse import quote


def repository_path(file: str, environment_key: str = "") -> str:
    """``file`` relative to the checkout; a path outside of it is left as it was given.

    The checkout is the folder that the CI names in an environment variable, else the working directory.
    """
    root = os.environ.get(environment_key) or os.getcwd()  # noqa: PTH109 (pathlib is not needed for a string)
    try:
        relative = os.path.relpath(file, root)
    except ValueError:  # another drive on Windows
        relative = file
    return (file if relative.startswith("..") else relative).replace(os.sep, "/")


def uri(file: str, environment_key: str = "") -> str:
    """The same as a URI reference; bytes of a name that are not UTF-8 are kept."""
    return quote(os.fsencode(repository_path(file, environment_key)))
