"""``advisor trust``: the rules of a folder may run, as they are now; what is trusted; and no more of it."""

import os
from contextlib import suppress

import click

from advisor.errors import InputError
from advisor.session.rule_selection import tell_unused
from advisor.session.session import folder_of
from advisor.settings import Settings, settings_in_file
from advisor.settings.trust import shown, whole
from advisor.settings.trusted import Trusted, difference, digests, everything, forget, keep


def trust_command(folder: str | None, *, lists: bool, remove: bool) -> int:
    """0; ``InputError`` where something cannot be read or written down."""
    if lists and remove:
        raise InputError("`--list` and `--remove` cannot be combined", remedy="give one of the two")
    path = folder or "."
    if lists:
        return listed(None if folder is None else path)
    if not remove and not os.path.exists(path):
        raise InputError("no such folder", path, remedy="name the folder whose settings name rules")
    return removed(path) if remove else trusted(path, settings_in_file(folder_of(path)))


def trusted(path: str, settings: Settings) -> int:
    """All folders of rules that the settings name, or none."""
    tell_unused(settings)
    file, line = settings.origins.get("rules", (settings.file or "", 0))
    if not settings.rules:
        why = f"{shown(file)} names no rules" if file else f"there are no settings for {shown(path)}"
        click.echo(f"nothing to trust: {why}")
        return 0
    for folder in settings.rules:
        if not os.path.isdir(folder):
            raise InputError(f"there is no folder of rules `{folder}`", file, line, remedy="correct `rules`")
    packs = [whole(folder) for folder in settings.rules]
    for folder, pack in zip(settings.rules, packs, strict=True):
        held = pack.held or {}
        keep(folder, digests(held))
        click.echo(f"trusted: {shown(os.path.realpath(folder))} ({counted(len(held))})")
    return 0


def listed(below: str | None) -> int:
    """A line for each folder that is trusted, or for those below one."""
    found = [one for one in everything() if below is None or _lies_below(below, one)]
    for one in found:
        click.echo(f"{shown(one.folder)} ({counted(len(one.files))}): {state(one)}")
    if not found:
        click.echo("nothing is trusted" + ("" if below is None else f" below {shown(below)}"))
    return 0


def removed(path: str) -> int:
    """The folders below a path, and those that its settings name, where they can be read."""
    named: set[str] = set()
    with suppress(InputError):
        named = {os.path.realpath(folder) for folder in settings_in_file(folder_of(path)).rules}
    gone = [one for one in everything() if one.folder in named or _lies_below(path, one)]
    for one in gone:
        forget(one.folder)
        click.echo(f"no longer trusted: {shown(one.folder)}")
    if not gone:
        click.echo(f"nothing of {shown(path)} is trusted")
    return 0


def _lies_below(path: str, one: Trusted) -> bool:
    """Whether a folder that is trusted is this one, or lies in it."""
    return os.path.join(one.folder, "").startswith(os.path.join(os.path.realpath(path), ""))


def state(one: Trusted) -> str:
    """Whether a folder is as it was."""
    if not os.path.isdir(one.folder):
        return "gone"
    try:
        changed = difference(one.files, digests(whole(one.folder).held or {}))
    except InputError as error:
        return f"not run: {shown(error.file)} {error.message}"
    return f"not run: {shown(os.path.join(one.folder, changed))}" if changed else "as it was"


def counted(number: int) -> str:
    """``3 files``."""
    return f"{number} file{'s' * (number != 1)}"
