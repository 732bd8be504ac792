"""Files of a checkout that are called like options, and scripts of one: neither decides what runs or is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main

CONFIG = (
    "base_model: Qwen/Qwen2.5-0.5B\ndatasets: [{path: d, type: alpaca}]\nlearning_rate: 1e-4\nmicro_batch_size: 1\n"
)
EVIL = "from pathlib import Path\n\nPath('ran').touch()\n"
ADVISOR = (sys.executable, "-m", "advisor")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(CONFIG)
    (tmp_path / "house.yaml" / "lint").mkdir(parents=True)
    for place in ("evil.py", "lint/evil.py"):
        (tmp_path / "house.yaml" / place).write_text(EVIL)
    return tmp_path


@pytest.mark.parametrize("command", ["check", "estimate", "hardware"])
@pytest.mark.parametrize("name", ["--rules=house.yaml", "--output-format=html=written.yaml", "--fix"])
def test_a_file_that_is_called_like_an_option_is_none(folder: Path, command: str, name: str):
    (folder / name).touch()
    result = CliRunner().invoke(main, [command, name, "run.yaml"])
    assert result.exit_code == 2
    assert name.partition("=")[0] in result.output and "./--" in " ".join(result.output.split())
    assert not (folder / "ran").exists() and not (folder / "written.yaml").exists()
    assert (folder / "run.yaml").read_text() == CONFIG


def test_behind_two_dashes_it_is_a_file(folder: Path):
    (folder / "--rules=x.yaml").write_text(CONFIG)
    result = CliRunner().invoke(main, ["check", "--isolated", "--", "--rules=x.yaml"])
    assert result.exit_code == 0 and "no such" not in result.output


def test_such_a_file_keeps_no_command_from_starting(folder: Path):
    (folder / "--no-block").touch()
    done = subprocess.run(
        [*ADVISOR, "launch", "--no-block", "--", "echo", "started"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "started\n")


def test_a_script_decides_neither_rules_nor_programs_of_this_process(folder: Path):
    (folder / "bin").mkdir()
    program = folder / "bin" / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    program.chmod(0o755)
    exports = (
        f"export ADVISOR_RULES={folder}/house.yaml\nexport PATH={folder}/bin:$PATH\nexport XDG_STATE_HOME={folder}\n"
    )
    (folder / "train.sh").write_text(f"{exports}axolotl train run.yaml\n")
    for script in ("train.sh", "./train.sh"):
        subprocess.run([*ADVISOR, "launch", "--", "echo", "bash", script], capture_output=True, check=False)
        subprocess.run([*ADVISOR, "launch", "--", "env", "-i", "bash", script], capture_output=True, check=False)
    assert not (folder / "ran").exists()


def test_a_pipe_with_accelerates_settings_is_left_to_the_command(folder: Path):
    read, write = os.pipe()
    os.write(write, b"num_processes: 2\n")
    os.close(write)
    shell = ["sh", "-c", f"cat /dev/fd/{read}", "sh"]
    line = [*ADVISOR, "launch", "--", "env", *shell, "accelerate", "launch", "--config_file"]
    os.set_inheritable(read, True)
    done = subprocess.run(
        [*line, f"/dev/fd/{read}", "-m", "axolotl.cli.train", "run.yaml"],
        pass_fds=(read,),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(read)
    assert "num_processes: 2" in done.stdout


def test_a_fifo_as_accelerates_settings_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "accelerate").mkdir()
    os.mkfifo(folder / "accelerate" / "default_config.yaml")
    monkeypatch.setenv("HF_HOME", str(folder))
    line = [*ADVISOR, "launch", "--", "echo", "accelerate", "launch", "-m", "axolotl.cli.train", "run.yaml"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("accelerate launch")


@pytest.mark.parametrize("options", [(), ("--max", "micro_batch_size")])
def test_a_name_steers_no_terminal_and_forges_no_line(folder: Path, options: tuple[str, ...]):
    name = "a\x1b]0;t\x07\u202e\n::error::f.yaml"
    (folder / name).write_text(CONFIG)
    result = CliRunner().invoke(main, ["estimate", "--isolated", "--gpus", "1x a100-80gb", *options, name])
    assert result.exit_code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(result.output)
    assert not any(line.startswith("::") for line in result.output.splitlines())
