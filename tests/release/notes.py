"""``make notes``: what the changelog says of this version, as the notes of a release."""

import re
import sys

from .places import ROOT, named


class NoNotesError(Exception):
    """The changelog has no section of a version."""


def section(text: str, version: str) -> str:
    """The body of a version's section. ``NoNotesError`` where there is none."""
    found = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise NoNotesError(f"CHANGELOG.md has no section ## [{version}]")
    return found[1].strip()


def date(text: str, version: str) -> str | None:
    """When a version was released, as ``2026-01-31``; None where the section does not say."""
    found = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", text, re.MULTILINE)
    return found and found[1]


def main() -> int:
    """Prints them; 1 where there are none."""
    (version,) = named(ROOT, "version")["advisor/about.py"]
    try:
        print(section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version))
    except NoNotesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
