"""``make site``: the pages that are written by hand, those that rules, options, JSON and figures give, built by Zensical.

``python -m tests.website.build FOLDER [PAGE]``; PAGE is the built web page, which then lies at ``try/``.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from advisor.about import REPOSITORY

from . import commands, json_page, plots, rules

ROOT = Path(__file__).parents[2]
SITE = ROOT / "plugins" / "site"
READMES = {
    "index.md": "README.md",
    "editor.md": "plugins/language_server/README.md",
    "agent.md": "plugins/agents/README.md",
    "web.md": "plugins/web/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages that have a place in the repository already."""
PICTURES = {"pictures/check.svg": ".github/pictures/check.svg"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
PLOTS = "\n![Allocated memory, foreseen against measured](pictures/memory.svg)\n![Tokens a second, foreseen against measured](pictures/speed.svg)\n"


def files() -> dict[str, str]:
    """Every page and picture by its place on the site."""
    pages = {file.name: file.read_text(encoding="utf-8") for file in sorted((SITE / "docs").glob("*.md"))}
    pages["trust.md"] += PLOTS
    for name, path in READMES.items():
        pages[name] = linked((ROOT / path).read_text(encoding="utf-8"), path, name)
    pages |= {f"rules/{name}": text for name, text in rules.files().items()}
    pages |= {f"commands/{name}": text for name, text in commands.files().items()}
    pages |= {name: (ROOT / path).read_text(encoding="utf-8") for name, path in PICTURES.items()}
    pages |= {f"pictures/{name}": text for name, text in plots.files().items()}
    return {**pages, "json.md": json_page.page()}


def linked(text: str, path: str, name: str) -> str:
    """A text of the repository with its links as the site has them: to pages that are there, else to the repository."""

    def led(found: re.Match[str]) -> str:
        return f"{found[1]}{target(found[2], path, name)}{found[3]}"

    parts = CODE.split(text)
    return "".join(part if place % 2 else LINK.sub(led, part) for place, part in enumerate(parts))


def target(link: str, path: str, name: str) -> str:
    """Where a link of ``path`` leads from the page ``name``."""
    if re.match(r"[a-z]+:|#", link):
        return link
    file, _, anchor = link.partition("#")
    whole = normpath(PurePosixPath(path).parent / file)
    page = next((page for page, source in {**READMES, **PICTURES}.items() if source == whole), None)
    docs = "plugins/site/docs/"
    if page is None and whole.startswith(docs):
        page = whole.removeprefix(docs)
    if page is None:
        return f"{REPOSITORY}/{'blob' if (ROOT / whole).is_file() else 'tree'}/main/{whole}"
    return relpath(page, PurePosixPath(name).parent) + (f"#{anchor}" if anchor else "")


def write(folder: Path) -> None:
    """All of it again, with the configuration next to it."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files().items():
        file = folder / "docs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    shutil.copy(SITE / "zensical.toml", folder)


def main(folder: Path, page: Path | None = None) -> int:
    """Zensical's exit code: not 0 where a link leads nowhere."""
    write(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / "zensical.toml")]
    code = subprocess.run(command, check=False).returncode
    if code == 0 and page is not None:
        shutil.copytree(page, folder / "out" / "try")
    return code


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
