"""A runner of GitHub's for the steps of a composite action: no more of it than the action needs."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "plugins" / "github_action"


@dataclass(frozen=True)
class Job:
    """A job on a runner: its checkout, its files of outputs and summary, and what the steps have said so far."""

    workspace: Path
    inputs: Mapping[str, str]
    pull_request: str = "7"
    event: str = "pull_request"
    base: str = ""
    folder: Path = FOLDER
    """Where the action lies that it uses."""

    @property
    def action(self) -> dict[str, Any]:
        return yaml.safe_load((self.folder / "action.yml").read_text(encoding="utf-8"))

    @property
    def temporary(self) -> Path:
        return self.workspace.parent

    def step(self, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs one step as the runner does: its ``run`` in bash, its ``env`` with the expressions worked out."""
        (step,) = (step for step in self.action["runs"]["steps"] if step.get("name") == name)
        environment = {key: self.value(text) for key, text in step.get("env", {}).items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env=self.environment() | environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )

    def environment(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "ADVISOR_", "GH_"))
        }
        return kept | {
            "PATH": f"{self.temporary / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "CI": "true",
            "GITHUB_ACTION_PATH": str(self.folder),
            "GITHUB_EVENT_NAME": self.event,
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_REPOSITORY": "acme/runs",
            "GITHUB_OUTPUT": str(self.temporary / "output"),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            "RUNNER_TEMP": str(self.temporary),
            "GH_LOG": str(self.temporary / "gh.log"),
            "GH_COMMENTS": "",
        }

    def value(self, text: str) -> str:
        """A value with its ``${{ }}`` replaced."""

        def known(match: re.Match[str]) -> str:
            match match[1].split("."):
                case ["inputs", name]:
                    return self.inputs.get(name, str(self.action["inputs"][name].get("default", "")))
                case ["steps", _, "outputs", name]:
                    return self.outputs()[name]
                case ["github", "event", "pull_request", "number"]:
                    return self.pull_request
                case ["github", "event", "pull_request", "base", "sha"]:
                    return self.base
            raise AssertionError(match[0])

        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", known, text)

    def outputs(self) -> dict[str, str]:
        lines = (self.temporary / "output").read_text(encoding="utf-8").splitlines()
        return {"command": str(Path(sys.executable).with_name("advisor"))} | dict(line.split("=", 1) for line in lines)

    def read(self, name: str) -> str:
        path = self.temporary / name
        return path.read_text(encoding="utf-8") if path.exists() else ""
