"""``python -m tests.release.ready TAG``: whether a commit may be released under a tag, and what must be done before."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .notes import NoNotesError, date, section
from .places import ROOT, named


def disagreements(root: Path) -> Iterator[str]:
    """Texts that name another owner or another version than ``advisor/about.py``."""
    for what in ("owner", "version"):
        found = named(root, what)
        (own,) = found["advisor/about.py"]
        for file, names in found.items():
            for other in sorted(names - {own}):
                yield f"{file} names the {what} {other}, advisor/about.py {own}"


def dated(root: Path) -> Iterator[str]:
    """What the changelog lacks for this version."""
    (version,) = named(root, "version")["advisor/about.py"]
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    try:
        body = section(text, version)
    except NoNotesError as error:
        yield str(error)
        return
    if date(text, version) is None:
        yield f"CHANGELOG.md has no date: ## [{version}] - 2026-01-31"
    if not body:
        yield f"CHANGELOG.md says nothing of {version}"


def missing(root: Path, tag: str) -> Iterator[str]:
    """All that stands between this commit and a release."""
    (owner,) = named(root, "owner")["advisor/about.py"]
    (version,) = named(root, "version")["advisor/about.py"]
    if owner == "OWNER":
        yield "nobody owns the repository yet: make owner NAME=your-account"
    if tag != f"v{version}":
        yield f"the tag is {tag}, the version {version}: tag v{version}, or make version NUMBER={tag.removeprefix('v')}"
    yield from disagreements(root)
    yield from dated(root)
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if re.search(r"^- ", section(text, "Unreleased"), re.MULTILINE):
        yield f"CHANGELOG.md has lines under [Unreleased]: move them to [{version}]"


def clean(root: Path) -> Iterator[str]:
    """Files that are not committed: they are in no tag."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        yield f"not committed: {line[3:]}"


def main(tag: str) -> int:
    """0, or 1 with a line for each thing that is missing."""
    found = [*missing(ROOT, tag), *clean(ROOT)]
    for each in found:
        print(f"error: {each}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
