"""Somebody who knows the repository by its address alone: a clone with the tag stands in for it, by git's ``insteadOf``."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from advisor.about import REPOSITORY, VERSION

from .places import ROOT

TAG = f"v{VERSION}"
SAMPLE = Path("sample_configs", "qlora-8b-24gb.yaml")
"""Fits what the README's first lines and its snippets state."""


class BrokenLineError(Exception):
    """A line that does not do what it says; with the end of its output."""


@dataclass(frozen=True)
class User:
    """A machine of somebody who knows the repository by its address alone."""

    clone: Path
    folder: Path
    environments: dict[str, Path] = field(default_factory=dict)

    def variables(self, environment: Path | None = None) -> Mapping[str, str]:
        """The environment's commands first in PATH; nothing of the advisor's own, nor of git's."""
        dropped = ("GIT_", "ADVISOR_", "GITHUB_", "VIRTUAL_ENV", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        others = [part for part in kept["PATH"].split(os.pathsep) if not Path(part).is_relative_to(sys.prefix)]
        path = os.pathsep.join(([str(environment / "bin")] if environment else []) + others)
        git = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.{self.clone.as_uri()}.insteadOf"}
        return kept | git | {"GIT_CONFIG_VALUE_0": REPOSITORY, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def environment(self, name: str) -> Path:
        """A virtual environment with nothing in it, made on first use."""
        if name not in self.environments:
            self.environments[name] = self.folder / name
            subprocess.run([sys.executable, "-m", "venv", str(self.folder / name)], check=True)
        return self.environments[name]

    def place(self, name: str, *configs: str, **files: str) -> Path:
        """A folder to work in, with the sample under these names, and with other files."""
        work = self.folder / f"{name}-work"
        for config in configs:
            (work / config).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.clone / SAMPLE, work / config)
        for file, text in files.items():
            (work / file).write_text(text, encoding="utf-8")
        return work

    def shell(self, script: str, work: Path, environment: Path | None = None) -> str:
        """What a script prints. ``BrokenLineError`` where a line of it fails."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", script],
            cwd=work,
            env=self.variables(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BrokenLineError(f"exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
        return done.stdout + done.stderr


@contextmanager
def user() -> Iterator[User]:
    """A clone of HEAD with the tag, and a folder to work in; both gone afterwards."""
    with tempfile.TemporaryDirectory() as temporary:
        clone = Path(temporary, "clone")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        subprocess.run(["git", "tag", "--force", TAG], cwd=clone, check=True, capture_output=True)
        yield User(clone, Path(temporary))
