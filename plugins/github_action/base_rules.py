"""``base_rules.py REVISION FOLDER``: writes the rules that a revision's settings name into FOLDER, and prints where.

One folder a line. Rules are code, and a pull request may change both them and the settings that name them: here both
are the revision's.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from advisor.errors import InputError
from advisor.settings import NARROW, RULES, load_settings

SETTINGS = ("advisor.toml", "pyproject.toml")
FILES = ("100644", "100755")
"""What git calls a plain file; links and submodules are left out."""


def main(revision: str, folder: str) -> int:
    """0, also where there are no rules; 2 with one line where settings or rules cannot be read."""
    for variable in (NARROW, RULES):
        os.environ.pop(variable, None)
    root = Path(os.path.realpath(folder))
    try:
        print("\n".join(rules_of(revision, root)))
    except (InputError, OSError, ValueError, subprocess.CalledProcessError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


def rules_of(revision: str, root: Path) -> tuple[str, ...]:
    """The folders of rules, written below ``root``. ``InputError`` for one that the revision does not have."""
    here = root / git("rev-parse", "--show-prefix").decode().strip()
    here.mkdir(parents=True, exist_ok=True)
    written(revision, root, lambda name: os.path.basename(name) in SETTINGS)
    settings = load_settings(here)
    if settings.file is None or not Path(os.path.realpath(settings.file)).is_relative_to(root):
        return ()
    folders = [Path(os.path.normpath(rules)) for rules in settings.rules]
    for folder in folders:
        if not folder.is_relative_to(root):
            raise InputError(f"the base's rules `{folder}` lie outside its repository", remedy="name them in `rules`")
        inside = folder.relative_to(root).as_posix()
        written(revision, root, lambda name, inside=inside: inside == "." or name.startswith(f"{inside}/"))
        if not folder.is_dir():
            raise InputError(f"the base has no folder of rules `{inside}`", remedy="correct its `rules`")
    return tuple(map(str, folders))


def written(revision: str, root: Path, wanted: Callable[[str], bool]) -> None:
    """Writes the files of a revision that are wanted, byte for byte, below ``root``."""
    for line in git("ls-tree", "-r", "-z", "--full-tree", revision).split(b"\0"):
        kind, _, name = line.decode("utf-8", "surrogateescape").partition("\t")
        if not name or not wanted(name):
            continue
        mode, _, blob = kind.split()
        if mode in FILES:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(git("cat-file", "blob", blob))


def git(*arguments: str) -> bytes:
    """What git prints."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
