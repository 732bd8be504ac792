"""``make demo`` shows what it runs, and ends in the verdict of the patched config."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_last_command_is_the_one_that_is_shown_and_says_that_the_run_fits(tmp_path: Path):
    asked = tmp_path / "asked"
    advisor = tmp_path / "bin" / "advisor"
    advisor.parent.mkdir()
    advisor.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec {sys.executable} -m advisor "$@"\n')
    advisor.chmod(0o755)
    (tmp_path / ".installed").touch()
    done = subprocess.run(
        ["make", "demo", f"VENV_DEMO={tmp_path}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^\$ advisor (.*)$", done.stdout, re.MULTILINE)
    run = [re.sub(rf"{tmp_path}/patched\.\w+", "patched", line) for line in asked.read_text().splitlines()]
    assert shown == run
    assert "fits" in done.stdout.rpartition("$ advisor ")[2].lower()
