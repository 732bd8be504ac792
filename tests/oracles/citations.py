"""The lines that a rule cites, in the installed source."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = re.compile(r"([\w./-]+\.py):(\d+(?:-\d+)?(?:, ?\d+(?:-\d+)?)*)")
VERSION = re.compile(r"@(\d[\w.]*)")
OURS = re.compile(r"\badvisor/[\w/]+(?:\.py)?")
STOPS = re.compile(r"raise|exit|abort|fail", re.IGNORECASE)


@dataclass(frozen=True)
class Cited:
    """``path:first-last@version``, the path from the package's name on."""

    path: str
    first: int
    last: int
    version: str

    def __str__(self) -> str:
        return f"{self.path}:{self.first}-{self.last}@{self.version}"

    @property
    def package(self) -> str:
        """The package that it lies in."""
        return self.path.split("/")[0]

    @property
    def is_installed(self) -> bool:
        """Whether this version of the package is here."""
        distributions = packages_distributions().get(self.package, [])
        return any(version(name).split("+")[0] == self.version for name in distributions)

    @property
    def exists(self) -> bool:
        """Whether there are such lines."""
        file = file_of(self.path)
        return file.is_file() and self.last <= len(file.read_text(encoding="utf-8").splitlines())

    @property
    def stops(self) -> bool:
        """Whether something is raised in these lines."""
        return self.exists and any(self.first <= line <= self.last for line in stops_in(file_of(self.path)))


def cited(source: str) -> Iterator[Cited]:
    """What a rule's ``source`` cites: ``file:lines@version``.

    Of several files of one package, the first is given in full, the others from the package on or next to the one
    before, and the last has the version.
    """
    for part in source.split(";"):
        path = ""
        for match in LINES.finditer(part):
            near = [f"{path.split('/')[0]}/{match[1]}", f"{path.rpartition('/')[0]}/{match[1]}"] if path else []
            path = next((name for name in near if file_of(name).is_file()), match[1])
            found = VERSION.search(part, match.end())
            for span in re.split(r", ?", match[2]):
                first, _, last = span.partition("-")
                yield Cited(path, int(first), int(last or first), found[1] if found else "")


def file_of(path: str) -> Path:
    """Where a source lies; a path that does not exist if its package is not installed."""
    package, _, rest = path.partition("/")
    spec = find_spec(package) if package.isidentifier() else None
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) / rest if locations else Path(path)


def own_modules(source: str) -> list[str]:
    """The advisor's own modules that a rule names, such as those of the estimate."""
    return [name for name in OURS.findall(source) if (ROOT / name).exists()]


@lru_cache(maxsize=64)
def stops_in(file: Path) -> frozenset[int]:
    """The lines of ``raise``, of ``assert``, and of calls whose name says that they end it."""
    return frozenset(line for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) for line in stop(node))


def stop(node: ast.AST) -> Iterator[int]:
    """The line of a node that stops a run."""
    if isinstance(node, ast.Raise | ast.Assert):
        yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
    if isinstance(node, ast.ImportFrom) and not node.level and node.module and lacks(node):
        yield node.lineno
    if isinstance(node, ast.Call) and STOPS.search(ast.unparse(node.func).rsplit(".", 1)[-1]):
        yield node.lineno


def lacks(node: ast.ImportFrom) -> bool:
    """Whether the module that is imported from never mentions one of the names."""
    try:
        spec = find_spec(node.module or "")
    except (ImportError, ValueError):  # modules made in C have no spec
        return False
    if spec is None or not spec.origin or not spec.origin.endswith(".py") or spec.submodule_search_locations:
        return False
    text = Path(spec.origin).read_text(encoding="utf-8")
    return any(name.name != "*" and name.name not in text for name in node.names)
