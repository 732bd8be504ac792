"""``make dist-try``: what lies in ``dist/``, installed into empty environments and used, on PYTHONS or those of CI here."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.request import urlopen

import yaml

from advisor.about import VERSION

from .dist import DIST
from .places import ROOT

SAMPLE = ROOT / "sample_configs" / "qlora-8b-24gb.yaml"
GPUS = ("--isolated", "--gpus", "1x rtx4090")


def main(pythons: Sequence[str]) -> int:
    """0 where all of them work; 1 with what fails, or where there is nothing to try or to try it on."""
    found = list(pythons) or list(of_ci())
    wheel, sdist = next(DIST.glob("*.whl"), None), next(DIST.glob("*.tar.gz"), None)
    if wheel is None or sdist is None or not found:
        print("error: make dist first" if found else "error: no Python of CI's is here", file=sys.stderr)
        return 1
    tries = [(python, wheel) for python in found] + [(found[0], sdist)]
    for python, file in tries:
        start = time.monotonic()
        try:
            page = tried(python, file)
        except (subprocess.CalledProcessError, ValueError) as error:
            said = f"{error.stdout}{error.stderr}" if isinstance(error, subprocess.CalledProcessError) else ""
            print(f"{python}: {file.name}: {error}\n{said}", file=sys.stderr)
            return 1
        print(f"{time.monotonic() - start:6.1f} s  {python}: {file.name}, {page}", flush=True)
    return 0


def of_ci() -> Iterator[str]:
    """The Pythons of the workflow's matrix; it is said which are not here."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    for version in workflow["jobs"]["test"]["strategy"]["matrix"]["python"]:
        name = f"python{version}"
        # A name in PATH may be a shim for a Python that is not there.
        if shutil.which(name) and subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0:
            yield name
        else:
            print(f"          {name}: not here")


def tried(python: str, file: Path) -> str:
    """What became of the page. ``ValueError``, or that of ``subprocess``, for what does not work."""
    with tempfile.TemporaryDirectory() as temporary:
        home, work = Path(temporary, "home"), Path(temporary, "work")
        work.mkdir()
        run(work, *python.split(), "-m", "venv", str(home))
        own = str(home / ("Scripts" if os.name == "nt" else "bin") / "python")
        run(work, own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(file))
        run(work, own, "-m", "pip", "check")
        if (said := run(work, own, "-W", "error", "-m", "advisor", "--version")) != f"advisor {VERSION}\n":
            raise ValueError(f"--version says {said!r}")
        for words in (["check", *GPUS, str(SAMPLE)], ["estimate", *GPUS, str(SAMPLE)], ["test"]):
            run(work, own, "-W", "error", "-m", "advisor", *words)
        return page(own, work) if shutil.which("npm") else "without the page: no npm"


def run(work: Path, *command: str) -> str:
    """What a command prints, with a cache of its own and nothing of this environment."""
    return subprocess.run(command, cwd=work, env=alone(work), check=True, capture_output=True, text=True).stdout


def alone(work: Path) -> dict[str, str]:
    """The environment of somebody else."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ADVISOR_", "VIRTUAL_"))
    }
    return kept | {"XDG_CACHE_HOME": str(work / "cache"), "XDG_STATE_HOME": str(work / "state")}


def page(python: str, work: Path) -> str:
    """Builds the page, with every warning an error, and asks its server for it."""
    command = [python, "-u", "-W", "error", "-m", "advisor", "web", "--no-open"]
    with subprocess.Popen(command, cwd=work, env=alone(work), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().partition(" ")[0]
            if not address:
                raise ValueError("advisor web ended without an address")
            sizes = {name: asked(address + name) for name in ("", "advisor.zip", "pyodide/pyodide.asm.wasm")}
        finally:
            server.terminate()
    return f"page with advisor.zip of {sizes['advisor.zip'] / 1000:,.0f} kB"


def asked(address: str) -> int:
    """The size of a file that the page is made of."""
    with urlopen(address) as answer:
        return len(answer.read())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
