"""Mutated configs never give a traceback, a hang, or a file that holds anything but what was meant and promised.

ADVISOR_FUZZ_INPUTS says how many of each kind (``make fuzz`` asks for many); with ADVISOR_CORPUS real configs are among them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
INPUTS = int(os.environ.get("ADVISOR_FUZZ_INPUTS", "40"))
SLOWER = {"launch": 3}
"""Kinds whose inputs take so many times as long: so many times fewer are tried."""
MOST_SECONDS = 120 + 5 * INPUTS
"""What a hang of the process itself, where no watchdog of its own ends it, may take."""


@pytest.mark.parametrize(
    "kind", ["yaml", "json", "model", "pipeline", "options", "launch", "log", "hardware", "settings"]
)
def test_mutated_inputs_are_refused_or_patched_exactly(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.many", kind, str(INPUTS // SLOWER.get(kind, 1))],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
    )
    left = {path.name: path.read_bytes()[:2000] for path in tmp_path.rglob("*") if path.is_file()}
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{left or ''}"
    with capsys.disabled():
        print(f"\n{done.stdout.strip()}")
    assert done.stdout.startswith(f"{kind}: ")
