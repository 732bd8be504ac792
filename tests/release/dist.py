"""``make dist``: sdist and wheel of the last commit in ``dist/``, the wheel from the sdist, and a look at what they hold."""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path

from .places import ROOT

DIST = ROOT / "dist"
ROOT_FILES = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"}
MADE = re.compile(r"PKG-INFO|setup\.cfg|[\w.-]+\.(?:egg|dist)-info/.+")
"""What setuptools adds."""
SHIPPED = re.compile(r"(?:advisor|rules|sample_configs)/.+|plugins/(?!.+/README\.md).+")
APART = re.compile(r"plugins/(?:github_action|site|zed|language_server/vscode)/")
"""Plugins that are taken from the repository."""


def main() -> int:
    """0; 1 with a line for each file that is odd or missing, or where a tool fails."""
    shutil.rmtree(DIST, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            exported(Path(folder))
            run("build", "--outdir", str(DIST), folder)
        run("twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))
    except subprocess.CalledProcessError as error:
        print((error.stdout + error.stderr)[-3000:], file=sys.stderr)
        return 1
    wrong = [*look(DIST)]
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1000:8,.0f} kB  {path.relative_to(ROOT)}")
    print("\n".join(f"error: {each}" for each in wrong), file=sys.stderr, end="\n" * bool(wrong))
    return 1 if wrong else 0


def exported(folder: Path) -> None:
    """The files of the last commit, and no others: a build takes what lies about."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, check=True, input=archive)


def run(module: str, *words: str) -> None:
    """A tool of this environment, silent unless it fails."""
    subprocess.run([sys.executable, "-m", module, *words], check=True, capture_output=True, text=True)


def look(dist: Path) -> Iterator[str]:
    """What is wrong with the contents of the one sdist and the one wheel."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    tracked = listed.stdout.splitlines()
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    with tarfile.open(sdist) as packed:
        names = {member.name.partition("/")[2] for member in packed.getmembers() if member.isfile()}
    yield from (f"{sdist.name} {each}" for each in faults(names, tracked, ROOT_FILES))
    with zipfile.ZipFile(wheel) as packed:
        names = {re.sub(r"^advisor/(rules|plugins|sample_configs)/", r"\1/", name) for name in packed.namelist()}
    yield from (f"{wheel.name} {each}" for each in faults(names, tracked, set()))


def faults(names: Collection[str], tracked: Collection[str], more: Collection[str]) -> Iterator[str]:
    """Files, by their place in the repository, that are missing or should not be there."""
    due = {name for name in tracked if SHIPPED.fullmatch(name) and not APART.match(name)} | set(more)
    data = {name for name in tracked if name.startswith("plugins/") and not APART.match(name)}
    yield from (f"lacks {name}" for name in sorted(due - set(names)))
    for name in sorted(names):
        if name not in due | data and not MADE.fullmatch(name):
            yield f"holds {name}"


if __name__ == "__main__":
    sys.exit(main())
