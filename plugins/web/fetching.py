"""Python for browsers (Pyodide, MPL-2.0, github.com/pyodide/pyodide), from npm the first time, then from the cache."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from advisor.errors import InputError
from advisor.util import cache_folder

HERE = Path(__file__).parent
LOCK = HERE / "package-lock.json"
"""Names the version of Pyodide and the checksums of what npm fetches."""
REMEDY = "install Node.js, or take the page of a release or of `make web`: --folder DIR"


def node() -> tuple[str, str]:
    """npm and node. ``InputError`` where one is missing."""
    npm, found = shutil.which("npm"), shutil.which("node")
    if npm is None or found is None:
        raise InputError("npm and node are needed to build the page", remedy=REMEDY)
    return npm, found


def pyodide() -> Path:
    """The folder of its package. ``InputError`` where npm is missing or fails."""
    npm, _ = node()
    cache = cache_folder() / "axolotl-advisor"
    kept = cache / f"pyodide-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]}"
    if not kept.is_dir():
        version = json.loads(LOCK.read_bytes())["packages"]["node_modules/pyodide"]["version"]
        click.echo(f"fetching Pyodide {version} from npm, once: 14 MB, kept in {kept}", err=True)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as temporary:
            for file in (HERE / "package.json", LOCK):
                shutil.copyfile(file, Path(temporary, file.name))
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            done_by(command, temporary, "npm cannot fetch Pyodide", "look whether npm reaches its registry")
            settle(Path(temporary, "node_modules"), kept)
    return kept / "pyodide"


def settle(made: Path, place: Path) -> None:
    """Moves a finished folder to its place, all at once; one that another process has put there meanwhile stays."""
    try:
        os.replace(made, place)
    except OSError:
        if not place.is_dir():
            raise


def done_by(command: list[str], folder: str, failed: str, remedy: str) -> None:
    """Runs a command. ``InputError`` with the end of what it said where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-300:]
        raise InputError(f"{failed}: {said}", remedy=remedy)
