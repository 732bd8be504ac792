"""What a change touches, as git knows it: the configs themselves, and those that name a DeepSpeed JSON of it."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property

from advisor.documents import Document
from advisor.documents.git import MODULE, Entry, answer, git, is_as_kept, top_of, tree
from advisor.errors import InputError
from advisor.record import record
from advisor.run.deepspeed.locate import deepspeed_candidates

OPTION = "--changed-since"


@record(eq=False)
class Repository:
    """A repository, its top, and the files of the commit that is compared with."""

    top: str
    files: Mapping[str, Entry]

    @cached_property
    def added(self) -> frozenset[str]:
        """Names that git knows today, or would if they were added; a repository that lies there is one of them."""
        listed = [answer(self.top, "ls-files", "-z"), *self.others()]
        return frozenset(os.fsdecode(name).rstrip("/") for part in listed for name in part.split(b"\0") if name)

    def others(self) -> list[bytes]:
        """What is there and neither known nor ignored."""
        return [answer(self.top, "ls-files", "--others", "--exclude-standard", "-z")]

    def has(self, path: str) -> bool:
        """Whether a path below the top is not as it was; what git ignores never counts."""
        name = os.path.relpath(path, self.top).replace(os.sep, "/")
        if (entry := self.files.get(name)) is not None:
            return not is_as_kept(path, entry)
        parts = name.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        for folder in above:
            if (entry := self.files.get(folder)) is not None:
                return entry.mode != MODULE or self.module(folder, entry).has(path)
        return any(folder in self.added for folder in (name, *above))

    def module(self, name: str, entry: Entry) -> "Repository":
        """A submodule, at the commit that was recorded; one that does not know it has changed throughout."""
        top = os.path.join(self.top, *name.split("/"))
        known = git(top, "cat-file", "-e", f"{entry.id}^{{commit}}").returncode == 0
        return Repository(top, tree(top, entry.id) if known else {})

    def was_folder(self, path: str) -> bool:
        """Whether something lay below a path that is gone."""
        below = os.path.relpath(path, self.top).replace(os.sep, "/") + "/"
        return any(name.startswith(below) for name in self.files)


@record(eq=False)
class Changed:
    """What was changed, added or deleted since ``revision``, in each of the repositories. A renamed file is both."""

    revision: str
    repositories: tuple[Repository, ...]

    def has(self, path: str) -> bool:
        """Whether a file was touched, or what a link leads to."""
        folder, name = os.path.split(os.path.abspath(path))
        places = {os.path.join(os.path.realpath(folder), name), os.path.realpath(path)}
        return any(found.has(place) for place in places for found in self.around(place))

    def around(self, place: str) -> list[Repository]:
        """The repositories that a path lies in."""
        return [found for found in self.repositories if place.startswith(os.path.join(found.top, ""))]

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
        place = os.path.realpath(path)
        return any(found.was_folder(place) for found in self.around(place))


def changed_since(revision: str, paths: Sequence[str]) -> Changed:
    """What is different from where this branch left ``revision``, committed or not; untracked files too.

    Files that git ignores never count. ``InputError`` where git, the repository or the revision is missing.
    """
    if "-" in paths:
        raise InputError(f"{OPTION} cannot be combined with `-`", remedy="name files or folders")
    tops = dict.fromkeys(top_of(path, OPTION) for path in paths)
    return Changed(revision, tuple(Repository(top, tree(top, base_in(top, revision))) for top in tops))


def base_in(top: str, revision: str, option: str = OPTION) -> str:
    """The commit where this branch left ``revision``; that itself where git knows of none. ``InputError``."""
    known = None if revision.startswith("-") else git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if known is None or known.returncode != 0:
        remedy = "name a commit, branch or tag; a shallow clone must fetch it first"
        raise InputError(f"{option}: unknown revision `{revision}`", top, remedy=remedy)
    base = git(top, "merge-base", known.stdout.decode().strip(), "HEAD").stdout or known.stdout
    return base.decode().strip()
