"""The extension for VS Code: its manifest fits its source, and its bundle works against the server, driven in Node.js."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "plugins" / "language_server" / "vscode"
SOURCE = (FOLDER / "src" / "extension.js").read_text(encoding="utf-8")
MANIFEST: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
ADVISOR = Path(sys.executable).with_name("advisor")


def test_the_settings_that_are_read_are_those_that_are_offered():
    offered = MANIFEST["contributes"]["configuration"]["properties"]
    assert {f"advisor.{name}" for name in re.findall(r'settings\.get\("(\w+)"\)', SOURCE)} == offered.keys()


def test_the_commands_that_are_offered_are_registered():
    offered = {each["command"] for each in MANIFEST["contributes"]["commands"]}
    assert set(re.findall(r'registerCommand\("([\w.]+)"', SOURCE)) == offered


def test_a_folder_that_is_not_trusted_names_no_program():
    trust = MANIFEST["capabilities"]["untrustedWorkspaces"]
    assert trust["supported"] == "limited" and "advisor.path" in trust["restrictedConfigurations"]


def test_versions_are_fixed_and_the_lock_names_no_host():
    wanted = {**MANIFEST["dependencies"], **MANIFEST["devDependencies"]}
    lock = (FOLDER / "package-lock.json").read_text(encoding="utf-8")
    locked = json.loads(lock)["packages"]
    assert '"resolved"' not in lock
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_nothing_but_the_bundle_is_packed():
    packed = [row[1:] for row in (FOLDER / ".vscodeignore").read_text().split() if row.startswith("!")]
    assert packed == ["dist/extension.js", "dist/licenses.txt", "LICENSE", "README.md", "package.json"]


@pytest.mark.slow
def test_the_bundle_works_against_the_server():
    pytest.importorskip("pygls", reason="pygls is not installed")
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None or not ADVISOR.exists():
        pytest.skip("needs node, npm and the command `advisor`")
    if not (FOLDER / "node_modules").is_dir():
        pytest.skip("no node_modules: run `make vscode`")
    for script in ("build", "test"):
        done = subprocess.run(
            [npm, "run", script],
            cwd=FOLDER,
            env={**os.environ, "ADVISOR": str(ADVISOR)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "# pass 6" in done.stdout
