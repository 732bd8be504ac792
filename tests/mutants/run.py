"""``python -m tests.mutants.run [WORD]``: whether the fast tests notice each wrong line of ``mutants.toml``.

The tree is copied; of each mutant the near tests run first, then all. Exits with 1 if one survives.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from advisor.util import toml_library

ROOT = Path(__file__).parents[2]
LISTED = Path(__file__).with_name("mutants.toml")
PYTEST = ("-m", "pytest", "-n", "auto", "--maxprocesses", "4", "-x", "-q", "--no-header", "-p", "no:cacheprovider")
ASKED = (*PYTEST, "--ignore", "tests/oracles", "--ignore", "tests/mutants")
FAST = "not oracle and not slow"


@dataclass(frozen=True)
class Mutant:
    """A file whose text has ``new`` instead of ``old``, and the tests that are asked first."""

    name: str
    file: str
    old: str
    new: str
    near: tuple[str, ...]


def listed() -> list[Mutant]:
    """The mutants of the file."""
    rows = toml_library().loads(LISTED.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(row["name"], row["file"], row["old"], row["new"], tuple(row["near"])) for row in rows]


def copied(folder: Path) -> Path:
    """The tracked files and those not ignored; the interpreter that has the advisor from there, and all else from here."""
    files = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(files, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    venv.create(folder / ".venv", symlinks=True)
    (packages,) = (folder / ".venv").glob("lib/*/site-packages")
    (packages / "here.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    interpreter = folder / ".venv" / "bin" / "python"
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(folder))
    subprocess.run([interpreter, *install], check=True)
    return interpreter


def killer(interpreter: Path, mutant: Mutant) -> str | None:
    """The first test that fails; None where the mutant survives them all."""
    path = interpreter.parents[2] / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.name}: `{mutant.old}` stands {text.count(mutant.old)} times"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        return failing(interpreter, mutant.near) or failing(interpreter, ())
    finally:
        path.write_text(text, encoding="utf-8")


def failing(interpreter: Path, places: tuple[str, ...]) -> str | None:
    """The first test of some places that fails, or a word of what else went wrong."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("ADVISOR_CORPUS", None)
    command = [interpreter, *ASKED, "-m", FAST, *places]
    done = subprocess.run(
        command, cwd=interpreter.parents[2], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else f"exit {done.returncode}"


def main(word: str = "") -> int:
    """Prints what became of each mutant; how many survive."""
    survivors = 0
    with tempfile.TemporaryDirectory() as temporary:
        interpreter = copied(Path(temporary))
        assert not (found := failing(interpreter, ())), f"without a mutant: {found}"
        for mutant in listed():
            if word in mutant.name:
                found = killer(interpreter, mutant)
                survivors += found is None
                print(
                    f"{'survives' if found is None else 'killed'}: {mutant.name}{f' ({found})' if found else ''}",
                    flush=True,
                )
    print(f"{survivors} survive")
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
