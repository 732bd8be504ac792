"""Which rules may run. Rules are code: every front end asks here, and nowhere else is it decided.

Those that the call names (``--rules``, ``ADVISOR_RULES``) run. Those that a settings file names run where the user has
trusted their folder (``advisor trust``) and every file in it is as it was then; what runs are the bytes that were
compared.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from advisor.engine.pack import Pack
from advisor.errors import InputError
from advisor.record import record
from advisor.settings.settings import RULES, Settings
from advisor.settings.trusted import difference, digests, recorded
from advisor.util import path_shown, read_start

MOST_FILES = 2000
MOST_BYTES = 32 << 20
"""Of a folder that is trusted: all of it is read before each run of its rules."""
NOT_CODE = (".git",)


@record(eq=False)
class _Permitted:
    """The packs that run. ``left_out``: a line about rules of the settings that do not; empty without any.

    ``lacks``: whether the settings may speak of rules that are not among them.
    """

    packs: tuple[Pack, ...] = ()
    left_out: str = ""
    lacks: bool = False


def permitted(settings: Settings, asked: Sequence[str] = ()) -> _Permitted:
    """What runs of the rules that a call names (``asked``), else the environment, else the settings.

    ``InputError`` for a folder that the call or the environment names and that is not there.
    """
    unused = "rules" in settings.unused
    by_environment = settings.origins.get("rules") == (RULES, 0)
    if asked or by_environment:
        by, folders = ("--rules", asked) if asked else (RULES, settings.rules)
        packs = tuple(named(os.path.abspath(folder), by) for folder in folders)
        return _Permitted(packs, lacks=unused or not real(settings.named_rules) <= real(folders))
    found = [_as_trusted(folder) for folder in settings.rules]
    reasons = [reason for reason in found if isinstance(reason, str)]
    packs = tuple(pack for pack in found if isinstance(pack, Pack))
    return _Permitted(packs, left_out(settings, reasons[0]) if reasons else "", lacks=unused or bool(reasons))


def real(folders: Iterable[str]) -> set[str]:
    """Folders, whatever links lead there."""
    return {os.path.realpath(folder) for folder in folders}


def named(folder: str, by: str) -> Pack:
    """The pack of a folder that the user has named."""
    if not os.path.isdir(folder):
        raise InputError("no such folder of rules", folder, remedy=f"correct {by}: a folder with one rule per file")
    return Pack(Path(folder))


def _as_trusted(folder: str) -> Pack | str:
    """The pack of a folder that is as it was when it was trusted; else why it does not run.

    Its rules see their real path: next to a link that leads to it lies what nobody has trusted.
    """
    folder = os.path.realpath(folder)
    known = recorded(folder)
    if known is None:
        return "rules are code, and nobody has trusted these"
    try:
        pack = whole(folder)
    except InputError as error:
        return f"{shown(error.file)} {error.message}"
    changed = difference(known.files, digests(pack.held or {}))
    return f"{shown(os.path.join(folder, changed))} since they were trusted" if changed else pack


def whole(folder: str) -> Pack:
    """A folder with all its files, read once. ``InputError`` where it is not one that can be trusted."""
    held: dict[str, bytes] = {}
    left = MOST_BYTES
    for path in files_of(folder):
        if len(held) == MOST_FILES:
            raise _too_much(folder)
        try:
            content = read_start(path, left + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path, remedy="remove it") from error
        left -= len(content)
        if left < 0:
            raise _too_much(folder)
        held[os.path.relpath(path, folder).replace(os.sep, "/")] = content
    return Pack(Path(folder), held)


def files_of(folder: str) -> Iterator[str]:
    """Every file of a folder and those within it. ``InputError`` where a folder is a link, or cannot be read."""

    def refuse(error: OSError) -> None:
        raise InputError(f"cannot be read: {error.strerror}", str(error.filename), remedy="check its permissions")

    for current, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if name not in NOT_CODE)
        for name in folders:
            path = os.path.join(current, name)
            if os.path.islink(path):
                raise InputError("is a link to a folder: trust does not reach it", path, remedy="put the folder here")
        yield from (os.path.join(current, name) for name in sorted(files) if name not in NOT_CODE)


def _too_much(folder: str) -> InputError:
    """A folder that is more than rules."""
    most = f"{MOST_FILES} files or {MOST_BYTES >> 20} MiB"
    return InputError(f"holds more than {most}", folder, remedy="put the rules in a folder of their own")


def left_out(settings: Settings, reason: str) -> str:
    """One line: which rules do not run, why not, and how they would."""
    file, line = settings.origins["rules"]
    return f"the rules that {shown(file)}:{line} names are not run: {reason}; {remedy(os.path.dirname(file))}"


def remedy(folder: str) -> str:
    """What the user may do, as a command to copy."""
    near = shown(folder or ".")
    return f"read them, then `advisor trust {shlex.quote(f'./{near}' if near.startswith('-') else near)}`"


def shown(path: str) -> str:
    """A path on one line, from the working directory if it lies below."""
    near = os.path.relpath(path)
    return path_shown(path if near.startswith("..") else near)
