"""A folder of somebody else's rules: its files, and what of them is run, never bytecode that lies there."""

import os
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import decode_source, spec_from_file_location
from pathlib import Path
from types import ModuleType

from advisor.record import record


@record(eq=False)
class Pack:
    """A folder of rules. ``held`` are its files, by path from there, as they were read once; None: disk is asked."""

    folder: Path
    held: Mapping[str, bytes] | None = None

    def rules(self, inner: str = "") -> list[Path]:
        """The files of rules in the folder, or in one within it, in the order of their names."""
        folder = self.folder / inner
        found = folder.glob("*.py") if self.held is None else (self.folder / name for name in self.held)
        return sorted(
            path
            for path in found
            if path.parent == folder and path.suffix == ".py" and path.name[0] not in "_." and self.has(path)
        )

    def has(self, path: Path) -> bool:
        """Whether a path is a file of it."""
        return path.is_file() if self.held is None else self.name(path) in self.held

    def name(self, path: Path) -> str:
        """A path as ``held`` has it."""
        return path.relative_to(self.folder).as_posix()

    def source(self, path: Path) -> bytes:
        """The text of a file. ``OSError`` where it cannot be read."""
        return path.read_bytes() if self.held is None else self.held[self.name(path)]

    def module(self, path: Path) -> ModuleType:
        """The module of a file, compiled of its text; whatever it raises."""
        source = self.source(path)
        name = f"advisor_rule_{sha256(os.fsencode(path)).hexdigest()[:16]}_{sha256(source).hexdigest()[:16]}"
        if name not in sys.modules:
            module = ModuleType(name)
            module.__file__ = str(path)
            with self.running():
                exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
            sys.modules[name] = module
        return sys.modules[name]

    @contextmanager
    def running(self) -> Generator[None]:
        """While its code is run: what is held is also what its files import of each other, and no bytecode is kept."""
        if self.held is not None:
            neighbours().add(self)
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            yield
        finally:
            sys.dont_write_bytecode = before


class _Neighbours(MetaPathFinder):
    """Modules of packs that are held, where a rule has put its folder on the path: as they were read, not as they are.

    What else lies there, such as a library in machine code, Python finds itself.
    """

    def __init__(self) -> None:
        self.packs: dict[str, Pack] = {}
        self.names: set[str] = set()

    def add(self, pack: Pack) -> None:
        """One more; a pack of the same folder gives way."""
        self.packs[os.path.realpath(pack.folder)] = pack
        self.names |= {part.removesuffix(".py") for name in pack.held or () for part in name.split("/")}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module of a pack, unless another one goes before it."""
        name = fullname.rpartition(".")[2]
        places = list(sys.path if path is None else path)
        for index, place in enumerate(places if name in self.names else ()):
            if (found := self.at(place, fullname)) is not None:
                return PathFinder.find_spec(fullname, places[:index], target) or found
        return None

    def at(self, place: str, fullname: str) -> ModuleSpec | None:
        """The module of a name in one folder of the path; None where no pack has it."""
        name, real = fullname.rpartition(".")[2], os.path.realpath(place or ".")
        for pack, inner in self.around(real):
            for file, package in ((f"{name}/__init__.py", True), (f"{name}.py", False)):
                path = pack.folder / inner / file
                if pack.has(path):
                    inside = [str(path.parent)] if package else None
                    loader = Held(str(path), pack.source(path))
                    return spec_from_file_location(fullname, path, loader=loader, submodule_search_locations=inside)
        return None

    def around(self, real: str) -> Iterator[tuple[Pack, str]]:
        """The packs that a folder is, or lies in, and its path from there."""
        for folder, pack in self.packs.items():
            if real == folder or real.startswith(os.path.join(folder, "")):
                yield pack, os.path.relpath(real, folder)


class Held(ExecutionLoader):
    """A module of a text that was read before."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.text = path, source

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002 (the library's name)
        """Where it was read."""
        return self.path

    def get_source(self, fullname: str) -> str:  # noqa: ARG002 (the library's name)
        """Its text."""
        return decode_source(self.text)


def neighbours() -> _Neighbours:
    """The finder of this process, asked before all others once there is a pack that is held."""
    for finder in sys.meta_path:
        if isinstance(finder, _Neighbours):
            return finder
    finder = _Neighbours()
    sys.meta_path.insert(0, finder)
    return finder
