"""What this interpreter's packages say: their versions, tables and defaults, and how the oracles end, into a folder.

``python -m tests.upstream.observe FOLDER``, once by the pinned environment and once by the newest.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.upstream.cited import Packages

ORACLES = ("test_key_tables.py", "test_parameter_counts.py", "test_layers.py", "test_axolotl_refusals.py")
HERE = Path(__file__).parents[1] / "oracles"
RESULTS = "oracles.xml"
VERSIONS = "versions.json"
MORE = "packages"
"""Packages that the environment itself lacks, such as TRL, whose oracles have one of their own."""
DEFAULTS = "defaults.json"
NOT_WRITTEN = "not-written.json"
TABLES = ("axolotl.json", "deepspeed.json", DEFAULTS)


def main(folder: Path) -> None:
    """Versions first, tables, then the oracles, which take minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    sites = [sysconfig.get_paths()["purelib"], str(folder / MORE)]
    write(folder / VERSIONS, {"sites": sites, "versions": Packages(sites).versions})
    write(folder / NOT_WRITTEN, {name: error for name, error in tables(folder).items() if error})
    files = [str(HERE / name) for name in ORACLES]
    options = ["-q", "-m", "oracle", "-n", "2", "--dist", "loadfile", f"--junitxml={folder / RESULTS}"]
    subprocess.run([sys.executable, "-m", "pytest", *options, *files], check=False)


def tables(folder: Path) -> dict[str, str]:
    """Writes tables and defaults; by program the last line of what went wrong."""
    made = "from tests.models.defaults import text; import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(text())"
    programs = {
        "key tables": ["-m", "tests.tables.generate", str(folder)],
        "defaults": ["-c", made, str(folder / DEFAULTS)],
    }
    return {name: last_line(words) for name, words in programs.items()}


def last_line(words: list[str]) -> str:
    """Runs Python; empty if it went well."""
    found = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    return "" if found.returncode == 0 else (found.stderr.strip().splitlines() or [f"exit {found.returncode}"])[-1]


def write(file: Path, value: object) -> None:
    """As JSON."""
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
