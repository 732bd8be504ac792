"""What the README and the site show of a command is what the command prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .texts import ROOT, TEXTS

SCREENS = re.findall(r"^```\n\$ advisor (.+)\n((?:.*\n)*?)```$", TEXTS, re.MULTILINE)
ELSEWHERE = "test house_rules"
"""Its files are written by test_readme."""
LEFT_OUT = "..."


def printed(command: str, folder: Path) -> str:
    """On a terminal of 80 columns that shows no colours; what is launched does nothing, and `new` writes elsewhere."""
    launched = folder / "accelerate"
    launched.write_text("#!/bin/sh\n")
    launched.chmod(0o755)
    own = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    done = subprocess.run(
        [sys.executable, "-m", "advisor", *command.split()],
        cwd=folder if command.startswith("new ") else ROOT,
        env=inherited | own,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout or done.stderr


def parts(text: str) -> list[str]:
    """What is between the lines that say that something is left out."""
    return [part for part in re.split(r"^ *\.\.\.\n", text, flags=re.MULTILINE) if part]


@pytest.mark.parametrize(
    "command", [command for command, _ in SCREENS if command != ELSEWHERE and " -p " not in command]
)
def test_a_screen_is_what_the_command_prints(command: str, tmp_path: Path) -> None:
    shown, screen = dict(SCREENS)[command], printed(command, tmp_path)
    if LEFT_OUT not in shown:
        assert shown == screen
    assert shown.startswith(LEFT_OUT) or screen.startswith(parts(shown)[0])
    assert parts(shown)[0] in screen


def test_the_prompt_shows_the_figures_of_the_plan(tmp_path: Path) -> None:
    (command,) = (command for command, _ in SCREENS if " -p " in command)
    figures = re.findall(r"[\d.]+ -> [\d.]+ GiB", dict(SCREENS)[command])
    assert figures
    screen = printed(command.replace(" -p ", " "), tmp_path)
    assert all(figure in screen for figure in figures)
