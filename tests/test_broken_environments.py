"""Odd machines: the advisor says one line, exits with 2 where it could not run, and waits for nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.hardware import detection
from advisor.hardware.detection import Card, detect

ADVISOR = [sys.executable, "-m", "advisor"]
CONFIG = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.yaml").write_text(CONFIG + "lora_dröpout: 1\n", encoding="utf-8")
    return tmp_path


def shell(folder: Path, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = line.replace("advisor", " ".join(ADVISOR), 1)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        "advisor check --gpus '1x t4' run.yaml >/dev/full",
        "advisor check --gpus '1x t4' run.yaml >&-",
        "mkdir gone; cd gone; rmdir ../gone; advisor check --gpus '1x t4' ../run.yaml",
    ],
)
def test_its_own_trouble_is_one_line_and_exit_code_two(folder: Path, line: str):
    done = shell(folder, line)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_terminal_that_lacks_a_letter_shows_another(folder: Path):
    done = shell(folder, "advisor check --gpus '1x t4' - < run.yaml", PYTHONIOENCODING="latin-1:strict")
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr


def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path):
    os.mkfifo(folder / "pipe.yaml")
    os.mkfifo(folder / "pipe.json")
    assert "run.yaml" in shell(folder, "advisor check --gpus '1x t4' .").stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "estimate", "check --fix"])
@pytest.mark.parametrize("named", ["pipe.yaml", "pipe.json", "<(cat run.yaml)", "/dev/zero"])
def test_a_pipe_or_device_that_is_named_is_refused_in_one_line(folder: Path, command: str, named: str):
    os.mkfifo(folder / "pipe.yaml")
    os.mkfifo(folder / "pipe.json")
    done = shell(folder, f"advisor {command} --gpus '1x t4' {named}")
    assert done.returncode == 2 and "a pipe or a device" in done.stderr, done.stderr


@pytest.mark.parametrize("named", ["pipe.json", "/proc/kmsg", "/dev/tty"])
def test_a_pipe_or_device_that_a_config_names_is_not_waited_for(folder: Path, named: str):
    os.mkfifo(folder / "pipe.json")
    (folder / "run.yaml").write_text(CONFIG + f"deepspeed: {named}\n")
    done = shell(folder, "advisor check --gpus '1x t4' run.yaml")
    assert done.returncode in (1, 2) and "deepspeed" in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("output", ["full", "concise", "json", "github", "gitlab", "sarif", "markdown"])
def test_a_config_whose_name_is_no_text_is_checked(folder: Path, output: str):
    os.rename(folder / "run.yaml", os.path.join(os.fsencode(folder), b"\xff\xfe.yaml"))
    done = shell(folder, f"advisor check --gpus '1x t4' --output-format {output} *.yaml")
    assert done.returncode == 1 and not done.stderr, done.stderr
    assert re.search("does.not.fit", done.stdout, re.IGNORECASE)


def test_a_config_whose_name_is_no_text_is_fixed(folder: Path):
    os.rename(folder / "run.yaml", os.path.join(os.fsencode(folder), b"\xff\xfe.yaml"))
    done = shell(folder, "advisor check --fix --unsafe-fixes --gpus '1x t4' *.yaml")
    assert done.returncode in (0, 1) and ("Fixed " in done.stdout or " fixed" in done.stdout) and not done.stderr, (
        done.stderr
    )
    assert os.listdir(os.fsencode(folder)) == [b"\xff\xfe.yaml"]


def test_a_pipe_of_measured_runs_is_not_waited_for(folder: Path):
    (folder / "axolotl-advisor").mkdir()
    os.mkfifo(folder / "axolotl-advisor" / "runs.jsonl")
    assert "run.yaml" in shell(folder, "advisor check --gpus '1x t4' run.yaml", XDG_STATE_HOME=str(folder)).stdout


@pytest.mark.parametrize("config", ["<(cat run.yaml)", "/dev/stdin"])
def test_a_launch_leaves_a_pipe_to_the_command(folder: Path, config: str):
    (folder / "axolotl").write_text('#!/bin/sh\ncat "$2"\n')
    (folder / "axolotl").chmod(0o755)
    done = shell(folder, f"cat run.yaml | PATH=.:$PATH advisor launch --gpus '1x t4' -- axolotl train {config}")
    assert done.stdout == (folder / "run.yaml").read_text(encoding="utf-8")
    assert done.stderr.count("not checked") == len(done.stderr.splitlines()) == 1


def test_a_card_without_memory_is_no_hardware(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(detection, "_cards", lambda: [Card(0, "GPU-0", "NVIDIA T4", 0, 0, (7, 5), sliced=False)])
    assert detect() is None


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/usr/bin/setpriv").exists(), reason="root may read everything")
def test_a_folder_that_may_not_be_entered_is_said_and_a_home_stops_nothing(folder: Path):
    (folder / "closed").mkdir()
    (folder / "closed").chmod(0)
    drop = "setpriv --reuid 65534 --clear-groups " if os.geteuid() == 0 else ""
    for parent in (folder, *folder.parents[:3]):
        parent.chmod(0o755)
    home = shell(
        folder,
        f"env -u XDG_CACHE_HOME -u XDG_STATE_HOME HOME={folder}/closed {drop}advisor check --gpus '1x t4' run.yaml",
    )
    if "No module" in home.stderr or ("Permission denied" in home.stderr and "python" in home.stderr):
        pytest.skip("another user may not run this interpreter")
    assert home.returncode in (0, 1) and "run.yaml" in home.stdout, home.stderr
    closed = shell(folder, f"{drop}advisor check --gpus '1x t4' .")
    assert closed.returncode == 2 and "closed" in closed.stderr and "permission denied" in closed.stderr
