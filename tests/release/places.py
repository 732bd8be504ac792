"""The owner and the version in every text that names them: ``make owner NAME=...``, ``make version NUMBER=...``."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = (
    "README.md",
    "pyproject.toml",
    "advisor/about.py",
    "plugins/**/*.md",
    "plugins/agents/axolotl-docs.patch",
    "plugins/site/zensical.toml",
    "plugins/zed/**/*.toml",
    "plugins/zed/**/*.rs",
    "plugins/language_server/vscode/package*.json",
)
NUMBER = r"\d+\.\d+\.\d+"
PLACES = {
    "owner": re.compile(
        r"(?:(?<=github\.com/)|(?<=uses: ))[\w.-]+(?=/axolotl-advisor)|(?<=https://)[\w-]+(?=\.github\.io/axolotl-advisor)"
        r"|(?<=\"publisher\": \")[\w.-]+"
    ),
    "version": re.compile(
        r"(?:(?<=/axolotl-advisor@v)|(?<=/axolotl-advisor\n    rev: v)|(?<=^VERSION = \")|(?<=^version = \")"
        r"|(?<=^  \"version\": \")|(?<=\"name\": \"axolotl-advisor\",\n      \"version\": \"))" + NUMBER,
        re.MULTILINE,
    ),
}
ALLOWED = {
    "owner": (
        re.compile(r"(?=.{1,39}\Z)[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"),
        "an account on GitHub: at most 39 letters, digits and single hyphens; make owner NAME=your-account",
    ),
    "version": (re.compile(NUMBER), "a version such as 0.3.0; make version NUMBER=0.3.0"),
}
UNTIL_THEN = "\n`OWNER` stands for the account that this repository lives under.\n"
"""What the README says until there is one."""


def files(root: Path) -> Iterator[Path]:
    """The texts that name owner or version."""
    for pattern in FILES:
        yield from sorted(root.glob(pattern))


def named(root: Path, what: str) -> dict[str, set[str]]:
    """The owners, or the versions, that each text names, by its path."""
    found = {file: set(PLACES[what].findall(file.read_text(encoding="utf-8"))) for file in files(root)}
    return {file.relative_to(root).as_posix(): names for file, names in found.items() if names}


def write(root: Path, what: str, value: str) -> list[str]:
    """Writes the owner, or the version, in all of them; the paths of those that changed. ``ValueError`` for a bad one."""
    form, words = ALLOWED[what]
    if not form.fullmatch(value):
        raise ValueError(f"{value!r} is not {words}" if value else f"name {words}")
    changed: list[str] = []
    for file in files(root):
        old = file.read_text(encoding="utf-8")
        new = PLACES[what].sub(value, old)
        if what == "owner":
            new = new.replace(UNTIL_THEN, "")
        if new != old:
            file.write_text(new, encoding="utf-8")
            changed.append(file.relative_to(root).as_posix())
    return changed


def main(what: str, value: str) -> int:
    """0, with the files that changed; 2, with one line, where the name is refused."""
    try:
        changed = write(ROOT, what, value)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(changed) or f"nothing to do: {value} stands everywhere")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
