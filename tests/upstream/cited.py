"""The lines that the sources of rules and terms cite, in the installed packages and in newer ones."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
FOLDERS = ("advisor", "rules", "plugins")
CITED = re.compile(r"([\w./-]+\.py):((?:\d+(?:-\d+)?)(?:, ?\d+(?:-\d+)?)*)(?: \([\w ,]+\))?@(\d[\w.]*\w)")
FOLLOWED = ("axolotl", "transformers", "deepspeed", "peft", "trl", "accelerate")
Fate = Literal["same", "moved", "changed", "gone"]


@dataclass(frozen=True)
class Citation:
    """``path:first-last@version`` and where in this repository it stands."""

    path: str
    first: int
    last: int
    version: str
    place: str

    def __str__(self) -> str:
        lines = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}@{self.version}"


@dataclass(frozen=True)
class Moved:
    """What has become of the lines: ``line``, where they begin now, if they have moved."""

    citation: Citation
    fate: Fate
    line: int = 0


def citations(root: Path = ROOT) -> Iterator[Citation]:
    """All of them, file by file."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".py", ".json", ".jsonl", ".toml"):
                yield from cited_in(file.read_text(encoding="utf-8"), file.relative_to(root).as_posix())


def cited_in(text: str, place: str) -> Iterator[Citation]:
    """Those of one text."""
    for match in CITED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        for span in re.split(r", ?", match[2]):
            first, _, last = span.partition("-")
            yield Citation(match[1], int(first), int(last or first), match[3], f"{place}:{line}")


class Packages:
    """The packages of one environment, by the folders that they are installed in."""

    def __init__(self, sites: Iterable[str | Path]) -> None:
        found = ((site, name, _version(Path(site), name)) for site in sites for name in FOLLOWED)
        there = {name: (Path(site), version) for site, name, version in found if version}
        self.sites = {name: site for name, (site, _) in there.items()}
        self.versions = {name: version for name, (_, version) in there.items()}

    def files(self, path: str, names: Sequence[str]) -> list[str]:
        """The files of these packages that end in ``path``, from the package's name on."""
        package = path.split("/")[0]
        if package in names and (self.sites[package] / path).is_file():
            return [path]
        every = ((self.sites[name], file) for name in names for file in _sources(self.sites[name] / name))
        return [file.relative_to(site).as_posix() for site, file in every if file.match(f"**/{path}")]

    def lines(self, file: str) -> tuple[str, ...] | None:
        """The lines of a file without what stands around them; None where there is none."""
        site = self.sites.get(file.split("/")[0])
        return _lines(site / file) if site is not None and (site / file).is_file() else None


def _version(site: Path, name: str) -> str:
    found = next(site.glob(f"{name}-*.dist-info"), None)
    return found.name.removesuffix(".dist-info").partition("-")[2].split("+")[0] if found else ""


@cache
def _sources(folder: Path) -> tuple[Path, ...]:
    return tuple(folder.rglob("*.py"))


@cache
def _lines(file: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines())


def followed(citation: Citation, here: Packages, newer: Packages) -> Moved | None:
    """What has become of it; None where it is of a version that is not installed here, or its file is not certain."""
    files = here.files(citation.path, [name for name, version in here.versions.items() if version == citation.version])
    old = here.lines(files[0]) if len(files) == 1 else None
    if old is None or citation.last > len(old):
        return None
    block, new = old[citation.first - 1 : citation.last], newer.lines(files[0])
    if new is None:
        return Moved(citation, "gone")
    if new[citation.first - 1 : citation.last] == block:
        return Moved(citation, "same")
    starts = [start + 1 for start in range(len(new)) if new[start : start + len(block)] == block]
    if not starts:
        return Moved(citation, "changed")
    return Moved(citation, "moved", min(starts, key=lambda start: abs(start - citation.first)))
