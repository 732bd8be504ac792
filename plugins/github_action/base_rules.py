"""``base_rules.py REVISION FOLDER``: writes the rules that a revision's settings name into FOLDER, and prints where.

One folder a line. Rules are code, and a pull request may change both them and the settings that name them: here both
are the revision's.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from advisor.documents.git import FILES, blob, top_of, tree
from advisor.errors import InputError
from advisor.settings import NARROW, RULES, load_settings

SETTINGS = ("advisor.toml", "pyproject.toml")


def main(revision: str, folder: str) -> int:
    """0, also where there are no rules; 2 with one line where settings or rules cannot be read."""
    for variable in (NARROW, RULES):
        os.environ.pop(variable, None)
    root = Path(os.path.realpath(folder))
    try:
        print("\n".join(rules_of(revision, root)))
    except (InputError, OSError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


def rules_of(revision: str, root: Path) -> tuple[str, ...]:
    """The folders of rules, written below ``root``. ``InputError`` for one that the revision does not have."""
    here = root / os.path.relpath(os.path.realpath("."), top_of(".", "--changed-since"))
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
    """Writes the plain files of a revision that are wanted, byte for byte, below ``root``."""
    top = top_of(".", "--changed-since")
    for name, entry in tree(top, revision).items():
        if entry.mode in FILES and wanted(name):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blob(top, entry))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
