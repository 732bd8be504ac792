"""What a change touches, as git knows it: the configs themselves, and those that name a DeepSpeed JSON of it."""

import os
import subprocess
from collections.abc import Sequence

from advisor.documents import Document
from advisor.errors import InputError
from advisor.opening import deepspeed_candidates
from advisor.record import record

OPTION = "--changed-since"
HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""What git sets for its hooks, and would take for the repository of every path."""
SETTINGS = ("-c", "diff.relative=false", "-c", "core.fsmonitor=false")
"""Paths from the top; and no program that the repository's settings name."""


@record(eq=False)
class Changed:
    """The files that were changed, added or deleted since ``revision``: real paths. A renamed one is there twice."""

    revision: str
    files: frozenset[str]

    def has(self, path: str) -> bool:
        """Whether a file was touched, or a folder that git keeps as one, such as a submodule."""
        folder, name = os.path.split(os.path.abspath(path))
        for place in (os.path.join(os.path.realpath(folder), name), os.path.realpath(path)):
            while place not in self.files and place != os.path.dirname(place):
                place = os.path.dirname(place)
            if place in self.files:
                return True
        return False

    def concerns(self, found: Document | InputError) -> bool:
        """Whether a config is to be checked: it was touched, or the JSON that it names, be that gone."""
        if isinstance(found, InputError):
            # A path that is gone is no typing error if git knows that it was there.
            there = os.path.lexists(found.file)
            return self.has(found.file) if there else not (self.has(found.file) or self.was_folder(found.file))
        return self.has(found.file) or (found.syntax == "yaml" and self.touches_json(found))

    def touches_json(self, config: Document) -> bool:
        """Whether the JSON that a YAML names was touched, or one that would go before it was deleted."""
        named = config.get("deepspeed")
        if not isinstance(named, str) or not named:
            return False
        for candidate in deepspeed_candidates(config, named):
            if self.has(candidate):
                return True
            if os.path.isfile(candidate):
                return False
        return False

    def was_folder(self, path: str) -> bool:
        """Whether something was deleted below a path."""
        below = os.path.join(os.path.realpath(path), "")
        return any(file.startswith(below) for file in self.files)


def changed_since(revision: str, paths: Sequence[str]) -> Changed:
    """What is different from where this branch left ``revision``, committed or not; untracked files too.

    Files that git ignores never count. ``InputError`` where git, the repository or the revision is missing.
    """
    if "-" in paths:
        raise InputError(f"{OPTION} cannot be combined with `-`", remedy="name files or folders")
    tops = dict.fromkeys(top_of(path) for path in paths)
    return Changed(revision, frozenset(file for top in tops for file in changed_in(top, revision)))


def top_of(path: str, option: str = OPTION) -> str:
    """The folder of the repository in which a path lies, or lay."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    done = git(folder, "rev-parse", "--show-toplevel")
    if done.returncode == 0:
        return os.path.realpath(os.fsdecode(done.stdout.removesuffix(b"\n")))
    said = os.fsdecode(done.stderr).partition("\n")[0].removeprefix("fatal: ")
    if "not a git repository" in said:
        raise InputError(f"{option}: not in a git repository", path, remedy=f"leave {option} out")
    raise InputError(f"{option}: git cannot read the repository: {said}", path, remedy="fix that first")


def base_in(top: str, revision: str, option: str = OPTION) -> str:
    """The commit where this branch left ``revision``; that itself where git knows of none. ``InputError``."""
    known = git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if revision.startswith("-") or known.returncode != 0:
        remedy = "name a commit, branch or tag; a shallow clone must fetch it first"
        raise InputError(f"{option}: unknown revision `{revision}`", top, remedy=remedy)
    base = git(top, "merge-base", known.stdout.decode().strip(), "HEAD").stdout or known.stdout
    return base.decode().strip()


def changed_in(top: str, revision: str) -> list[str]:
    """The files of one repository."""
    base = base_in(top, revision)
    compared = git(top, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base)
    untracked = git(top, "ls-files", "--others", "--exclude-standard", "-z")
    for done in (compared, untracked):
        if done.returncode != 0:
            said = os.fsdecode(done.stderr).partition("\n")[0]
            raise InputError(f"{OPTION}: git cannot compare: {said}", top, remedy="fix that first")
    names = (compared.stdout + untracked.stdout).split(b"\0")
    return [os.path.join(top, os.fsdecode(name).rstrip("/")) for name in names if name]


def git(folder: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """A question to git."""
    environment = {name: value for name, value in os.environ.items() if name not in HOOKS} | {"LC_ALL": "C"}
    command = ["git", "-C", folder, *SETTINGS, *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=False, env=environment, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise InputError(f"git cannot be run: {error.strerror}", remedy="install git") from error
