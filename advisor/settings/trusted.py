"""What a user has trusted: folders of rules, each with the digest of every file, a file each in the user's state."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from advisor.errors import InputError
from advisor.record import record
from advisor.util import state_folder

Digests = Mapping[str, str]
"""SHA-256 of each file, by its path from the folder."""


@record
class Trusted:
    """A folder, by its real path, and what its files were when it was trusted."""

    folder: str
    files: Digests


def digests(held: Mapping[str, bytes]) -> Digests:
    """The digest of each file."""
    return {name: sha256(content).hexdigest() for name, content in held.items()}


def difference(old: Digests, new: Digests) -> str:
    """The first file that is not as it was, and in which way; empty where all are."""
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            how = "is new" if name not in old else "is gone" if name not in new else "has changed"
            return f"{name} {how}"
    return ""


def recorded(folder: str) -> Trusted | None:
    """What was trusted of a folder; None where nothing was, or nobody can say."""
    with suppress(OSError, RuntimeError):
        found = read(place(folder))
        return found if found is not None and found.folder == os.path.realpath(folder) else None
    return None


def keep(folder: str, files: Digests) -> None:
    """Writes down that a folder is trusted: the whole file or none, for nobody else to read. ``InputError``."""
    said = {"folder": os.path.realpath(folder), "files": dict(files)}
    try:
        target = place(folder)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump(said, file)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except (OSError, RuntimeError) as error:
        raise _unwritable(error) from error


def forget(folder: str) -> None:
    """Takes it back. ``InputError`` where it cannot be written down."""
    try:
        place(folder).unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise _unwritable(error) from error


def everything() -> Iterator[Trusted]:
    """All that is trusted, by folder."""
    with suppress(OSError, RuntimeError):
        found = (read(path) for path in (state_folder() / "trusted").glob("*.json"))
        yield from sorted((one for one in found if one is not None), key=lambda one: one.folder)


def place(folder: str) -> Path:
    """The file for one folder."""
    return state_folder() / "trusted" / f"{sha256(os.fsencode(os.path.realpath(folder))).hexdigest()}.json"


def read(path: Path) -> Trusted | None:
    """What a file says; None where it says nothing that can be understood."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        said = json.loads(path.read_text(encoding="ascii"))
        return Trusted(str(said["folder"]), {str(name): str(digest) for name, digest in said["files"].items()})
    return None


def _unwritable(error: Exception) -> InputError:
    """Why the user's state cannot be written."""
    reason = error.strerror if isinstance(error, OSError) else error
    return InputError(f"what is trusted cannot be written down: {reason}", remedy="check XDG_STATE_HOME, or HOME")
