"""The lines that a user copies from the texts to install the advisor, and what each is: of the tag, an extra, a checkout."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from advisor.about import REPOSITORY, VERSION

SITE = "plugins/site/docs/*.md"
TEXTS = ("README.md", "CONTRIBUTING.md", "plugins/*/*.md", "plugins/agents/*/*.md", SITE)
INSTALL = re.compile(r"pip install (\"[^\"\n]+\"|'[^'\n]+'|[^\s`\"']+)")
TAG = f"git+{REPOSITORY}@v{VERSION}"
NAME = "axolotl-advisor"
Kind = Literal["tag", "extra", "checkout"]


@dataclass(frozen=True)
class Install:
    """``pip install`` with one requirement, and where it stands."""

    file: str
    line: int
    requirement: str

    @property
    def command(self) -> str:
        """What the user runs."""
        return f'pip install "{self.requirement}"'

    @property
    def extras(self) -> list[str]:
        """Those that it names."""
        named = re.match(rf"{NAME}\[([\w,-]+)\]", self.requirement)
        return named[1].split(",") if named else []

    @property
    def kind(self) -> Kind | None:
        """None for one that no user can run: of another version, or of an index that does not have it."""
        match self.requirement.split(" @ "):
            case [source] if source == TAG:
                return "tag"
            case [_, source] if source == TAG and self.extras:
                return "tag"
            case [_] if self.requirement == f"{NAME}[{','.join(self.extras)}]":
                return "extra"
            case ["." | "-e"]:
                return "checkout"
            case _:
                return None


def installs(root: Path) -> Iterator[Install]:
    """All of them, in the order of the texts."""
    for file in (file for pattern in TEXTS for file in sorted(root.glob(pattern))):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for found in INSTALL.findall(line):
                yield Install(file.relative_to(root).as_posix(), number, found.strip("\"'"))


def snippets(root: Path) -> dict[str, Any]:
    """The site's YAML files for CI by their names, such as ``.gitlab-ci.yml``."""
    text = (root / SITE.replace("*", "ci")).read_text(encoding="utf-8")
    return {name: yaml.safe_load(body) for name, body in re.findall(r"```yaml\n# (\.\S+)\n(.*?)```", text, re.DOTALL)}


def first_block(root: Path) -> str:
    """The README's first lines for a shell: install and check."""
    text = (root / "README.md").read_text(encoding="utf-8")
    return next(block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "pip install" in block)
