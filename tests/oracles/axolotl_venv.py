"""A virtual environment in which axolotl's own commands run on a CPU: what is installed here, and what they lack."""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ("pyproject.toml", "README.md", "LICENSE", "advisor", "rules", "plugins", "sample_configs")
# What `axolotl train` imports before it registers plugins, in addition to torch, transformers, peft and accelerate.
LACKING = (
    *("python-dotenv", "requests", "fire", "posthog", "colorama", "pyarrow", "datasets==4.8.4", "numba"),
    "trl==1.9.0",  # for `preprocess`
)
# What it imports before it trains: with what it needs, then what needs nothing that is not there. Triton is no part of
# the other environment, where it is stood in for.
TRAINS = ("wandb",)
TO_TRAIN = ("axolotl-contribs-lgpl", "axolotl-contribs-mit", "bitsandbytes==0.50.2", "fastcore", "evaluate", "triton")
TO_BUILD = ("setuptools>=77",)
# Once more, for their commands.
COMMANDS = ("axolotl==0.19.0", "accelerate==1.13.0")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--timeout", "20", "--retries", "1")


class UnavailableError(Exception):
    """Packages that cannot be had."""


@dataclass(frozen=True)
class Environment:
    """The folder of the environment."""

    folder: Path

    @property
    def bin(self) -> Path:
        """Where its commands are."""
        return self.folder / "bin"

    def run(self, *command: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        """A command of the environment, as a user without a GPU and without the network would call it."""
        own = {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "AXOLOTL_DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "NO_COLOR": "1",
            "COLUMNS": "80",
            "HF_HOME": str(folder / "hub"),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        inherited = {name: os.environ[name] for name in os.environ if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        return subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env=inherited | own | variables,
        )


def environment(*, trains: bool = False) -> Environment:
    """The environment, kept from call to call; this project is installed into it once in a run of tests, as a wheel.

    ``trains``: one in which ``axolotl train`` goes on to its steps.
    """
    packages = sysconfig.get_paths()["purelib"]
    more = (*TRAINS, *TO_TRAIN) if trains else ()
    made_of = "\n".join((*LACKING, *more, *TO_BUILD, *COMMANDS, packages, sys.version))
    folder = ROOT / ".venv-axolotl" / hashlib.sha256(made_of.encode()).hexdigest()[:12]
    found = Environment(folder)
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:  # files of tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".made").is_file():
            make(found, packages, trains=trains)
        installed, this_run = folder / ".installed", os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        if not installed.is_file() or installed.read_text() != this_run:
            install(found)
            installed.write_text(this_run)
    return found


def available(*, trains: bool = False) -> Environment:
    """The same for a test, which is skipped where axolotl, or what its commands need, cannot be had."""
    if importlib.util.find_spec("axolotl") is None:
        pytest.skip("axolotl is not installed with these tests")
    try:
        return environment(trains=trains)
    except UnavailableError as error:
        pytest.skip(f"what axolotl's commands need cannot be had: {error}")


def install(found: Environment) -> None:
    """This project, built from a copy, since a build leaves its files in the source tree."""
    source = found.folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    for name in SHIPPED:
        path = ROOT / name
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, source / name)
    pip(found, "--no-deps", "--no-build-isolation", "--ignore-installed", str(source))


def make(found: Environment, packages: str, *, trains: bool) -> None:
    """A new environment over the packages of this one."""
    shutil.rmtree(found.folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(found.folder)], check=True)
    (inside,) = found.folder.glob("lib/python*/site-packages")
    (inside / "shared.pth").write_text(packages + "\n", encoding="utf-8")
    try:
        pip(found, *LACKING, *TO_BUILD)
        if trains:
            pip(found, *TRAINS)
            pip(found, "--no-deps", *TO_TRAIN)
        pip(found, "--no-deps", "--ignore-installed", *COMMANDS)
    except subprocess.CalledProcessError as error:
        raise UnavailableError(error.stderr.strip().splitlines()[-1]) from error
    (found.folder / ".made").touch()


def pip(found: Environment, *arguments: str) -> None:
    """Installs into the environment."""
    subprocess.run([str(found.bin / "python"), *PIP, *arguments], capture_output=True, text=True, check=True)
