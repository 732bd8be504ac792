"""``python -m advisor.plugins.web.build FOLDER``: the page with all that it needs, from npm and this installation."""

import base64
import hashlib
import json
import shutil
import sys
import zipfile
import zlib
from pathlib import Path

from advisor.errors import InputError
from advisor.report.html_page import STYLE

from .fetching import LOCK, done_by, node, pyodide
from .menus import filled, samples
from .sources import sources

HERE = Path(__file__).parent
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""What Python for browsers loads; its library is compiled, the rest unchanged."""
COMPILED = ("advisor.zip", "pyodide/python_stdlib.zip")
PACKED = ("worker.js", "advisor.zip", *(f"pyodide/{name}" for name in PYODIDE))
"""What a page opened from ``file://`` may not load, and packed.js holds."""
PAGE = "index.html"
SPACE = HERE / "space.md"
"""What a Space of Hugging Face reads first, so that the folder is one as it is."""
COMPILING = (HERE / "compile.mjs", HERE / "compiling.py")


def key() -> str:
    """A name for the page, another one as soon as anything has changed that it is built from."""
    own = [Path(__file__), HERE / "menus.py", LOCK, STYLE, SPACE, *COMPILING, *sorted((HERE / "static").iterdir())]
    own += sorted(path for path in samples().rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path, name in [*((path, path.name) for path in own), *sources()]:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def build(folder: Path) -> None:
    """Writes the page into a folder. ``InputError`` where npm is missing or fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (HERE / "static").iterdir():
        shutil.copyfile(path, folder / path.name)
    page = (HERE / "static" / PAGE).read_text(encoding="utf-8")
    (folder / PAGE).write_text(filled(page), encoding="utf-8")
    shutil.copyfile(STYLE, folder / "report.css")
    shutil.copyfile(SPACE, folder / "README.md")
    with zipfile.ZipFile(folder / "advisor.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, name in sources():
            archive.write(path, name)
    _with_python(folder)
    files = {name: packed(folder / name) for name in PACKED}
    (folder / "packed.js").write_text(f"self.packedFiles = {json.dumps(files)};")


def packed(path: Path) -> str:
    """A file as the page unpacks it: raw deflate, base64."""
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(path.read_bytes()) + deflate.flush()).decode()


def _with_python(folder: Path) -> None:
    """Python for browsers, of the version and with the checksum that the lock file names, and what it compiles."""
    own = pyodide()
    (folder / "pyodide").mkdir(exist_ok=True)
    for name in PYODIDE:
        shutil.copyfile(own / name, folder / "pyodide" / name)
    archives = [str((folder / name).resolve()) for name in COMPILED]
    command = [node()[1], str(COMPILING[0]), str(own / "pyodide.mjs"), str(COMPILING[1]), *archives]
    done_by(command, str(folder), "Pyodide cannot compile the page's Python", "update Node.js")


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]))
    except InputError as error:
        sys.exit(f"error: {error}")
