"""``python -m advisor.plugins.web.build FOLDER``: the page with all that it needs, from npm and this installation."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from advisor.errors import InputError
from advisor.report.html_page import STYLE

HERE = Path(__file__).parent
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""What Python for browsers loads (MPL-2.0, github.com/pyodide/pyodide); its library is compiled, the rest unchanged."""
COMPILED = ("advisor.zip", "pyodide/python_stdlib.zip")
PACKED = ("worker.js", "advisor.zip", *(f"pyodide/{name}" for name in PYODIDE))
"""What a page opened from ``file://`` may not load, and packed.js holds."""
PACKAGES = ("advisor", "advisor.rules", "advisor.plugins.web", "yaml", "click")
UNUSED = ("accuracy", "__pycache__", "static", "prompt", "crash_log", "launchers")
SUFFIXES = (".py", ".json", ".jsonl", ".toml", ".css")


def build(folder: Path) -> None:
    """Writes the page into a folder. ``InputError`` where npm is missing or fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (HERE / "static").iterdir():
        shutil.copyfile(path, folder / path.name)
    shutil.copyfile(STYLE, folder / "report.css")
    with zipfile.ZipFile(folder / "advisor.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, name in sources():
            archive.write(path, name)
    with_python(folder)
    files = {name: packed(folder / name) for name in PACKED}
    (folder / "packed.js").write_text(f"self.packedFiles = {json.dumps(files)};")


def packed(path: Path) -> str:
    """A file as the page unpacks it: raw deflate, base64."""
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(path.read_bytes()) + deflate.flush()).decode()


def with_python(folder: Path) -> None:
    """Python for browsers, of the version and with the checksum that the lock file names, and what it compiles."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise InputError("npm is needed to fetch Pyodide", remedy="install Node.js, or name a built page: --folder DIR")
    with tempfile.TemporaryDirectory() as temporary:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(HERE / name, Path(temporary) / name)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        done_by(command, temporary, "npm cannot fetch Pyodide", "look whether npm reaches its registry")
        own = Path(temporary, "node_modules", "pyodide")
        (folder / "pyodide").mkdir(exist_ok=True)
        for name in PYODIDE:
            shutil.copyfile(own / name, folder / "pyodide" / name)
        archives = [str((folder / name).resolve()) for name in COMPILED]
        command = [node, str(HERE / "compile.mjs"), str(own / "pyodide.mjs"), str(HERE / "compiling.py"), *archives]
        done_by(command, temporary, "Pyodide cannot compile the page's Python", "update Node.js")


def done_by(command: list[str], folder: str, failed: str, remedy: str) -> None:
    """Runs a command. ``InputError`` with the end of what it said where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-300:]
        raise InputError(f"{failed}: {said}", remedy=remedy)


def sources() -> Iterator[tuple[Path, str]]:
    """The files of the advisor, and of what it imports in Python alone, each with its place in the archive."""
    yield HERE.parent / "__init__.py", "advisor/plugins/__init__.py"
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None and spec.submodule_search_locations
        root = Path(next(iter(spec.submodule_search_locations)))
        for path in files_in(root):
            yield path, f"{package.replace('.', '/')}/{path.relative_to(root).as_posix()}"


def files_in(root: Path) -> Iterator[Path]:
    """The files of a package that are read in the browser, in order."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in UNUSED)
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(SUFFIXES))


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]))
    except InputError as error:
        sys.exit(f"error: {error}")
