"""Questions to git that its own store answers. Nothing runs that a repository names, in its settings or its files.

No question makes git read a file of the work tree, where it would ask filters (gitattributes(5)): what lies there is
compared with what git keeps here, byte for byte.
"""

import os
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha1, sha256

from advisor.documents.repository import checkout_of
from advisor.errors import InputError
from advisor.record import record
from advisor.util import program_on_path, read_start

SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    f"core.attributesFile={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "credential.helper=",
    "diff.external=",
    "safe.bareRepository=explicit",
)
"""Over a repository's own: what would run a program, and folders inside a checkout that pose as repositories."""
SURROUNDINGS = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""A partial clone asks nobody for what it lacks; nothing is written."""
OF_HOOKS = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
)
"""What git sets for its hooks, and would take for the repository of every path."""
SECONDS = 120
MOST_BYTES = 64 << 20
FILES = ("100644", "100755")
LINK, MODULE = "120000", "160000"


@record
class Entry:
    """A file of a commit, a link (its content is where it leads) or another repository (its id is a commit)."""

    mode: str
    id: str


def git(folder: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """A question to git about the repository whose top this is. ``InputError`` where there is no git, or no answer."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_HOOKS}
    kept["GIT_CEILING_DIRECTORIES"] = os.path.dirname(os.path.realpath(folder))
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    command = [program(), "-C", folder, "--no-pager", "--literal-pathspecs", *settings, *arguments]
    try:
        return subprocess.run(
            command,
            capture_output=True,
            check=False,
            env=kept | SURROUNDINGS,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except OSError as error:
        raise InputError(f"git cannot be run: {error.strerror}", remedy="install git") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"git has not answered in {SECONDS} s", folder, remedy="see what `git status` says") from error


def answer(folder: str, *arguments: str) -> bytes:
    """What git prints. ``InputError`` with its first line where it fails."""
    done = git(folder, *arguments)
    if done.returncode != 0:
        said = os.fsdecode(done.stderr).partition("\n")[0].removeprefix("fatal: ")
        raise InputError(f"git cannot read the repository: {said}", folder, remedy="fix that first")
    return done.stdout


def program() -> str:
    """Git as the path has it. ``InputError`` where it is not there."""
    if found := program_on_path("git"):
        return found
    raise InputError("git cannot be run: it is not on the path", remedy="install git")


@lru_cache(maxsize=8)
def tree(top: str, commit: str) -> Mapping[str, Entry]:
    """The files of a commit by name, from the top of the repository."""
    found: dict[str, Entry] = {}
    for line in answer(top, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        kind, _, name = line.partition(b"\t")
        if name and b".." not in name.split(b"/"):
            mode, _, id_ = kind.decode("ascii").split()
            found[os.fsdecode(name)] = Entry(mode, id_)
    return found


def blob(top: str, entry: Entry) -> bytes:
    """The content of a file as git keeps it. ``InputError`` where a partial clone lacks it."""
    done = git(top, "cat-file", "blob", entry.id)
    if done.returncode != 0:
        message = f"git does not have the content of {entry.id[:12]}"
        raise InputError(message, top, remedy="a partial clone must fetch it first")
    return done.stdout


def is_as_kept(path: str, entry: Entry) -> bool:
    """Whether what lies at a path is what git keeps, ends of lines aside. A file that git would filter is not."""
    try:
        if entry.mode == LINK:
            return _is_content(os.fsencode(os.readlink(path)), entry.id)
        if entry.mode not in FILES or os.path.islink(path):
            return False
        content = read_start(path, MOST_BYTES + 1)
    except OSError:
        return False
    return _is_content(content, entry.id) or _is_content(content.replace(b"\r\n", b"\n"), entry.id)


def _is_content(content: bytes, id_: str) -> bool:
    """Whether an id is that of a content: a hash of the kind that the repository has (gitformat-pack(5))."""
    whole = b"blob %d\0%b" % (len(content), content)
    made = sha1(whole, usedforsecurity=False) if len(id_) == 40 else sha256(whole)
    return made.hexdigest() == id_


def top_of(path: str, option: str) -> str:
    """The folder of the repository in which a path lies, or lay.

    Git is asked there and not further down, where a folder may pose as a repository. ``InputError`` without one.
    """
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    top = checkout_of(os.path.realpath(folder))
    if top is None:
        raise InputError(f"{option}: not in a git repository", path, remedy=f"leave {option} out")
    done = git(top, "rev-parse", "--show-toplevel")
    said = os.fsdecode(done.stderr).partition("\n")[0].removeprefix("fatal: ")
    if done.returncode == 0:
        found = os.path.realpath(os.fsdecode(done.stdout.removesuffix(b"\n")))
        if os.path.normcase(found) == os.path.normcase(top):
            return top
        said = "its files lie elsewhere"
    raise InputError(f"{option}: git cannot read the repository: {said}", path, remedy="fix that first")
