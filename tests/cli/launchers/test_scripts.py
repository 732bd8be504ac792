"""Shell scripts in front of a launch: read as text, and only where it is sure what they train."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from advisor.cli.launchers import Command, read_command
from advisor.cli.launchers.launchers import ENVIRONMENT
from advisor.cli.launchers.shell import UNKNOWN, commands

USUAL = """\
#!/usr/bin/env bash
# Trains.
set -euo pipefail
source venv/bin/activate
export WANDB_PROJECT="a b" CUDA_VISIBLE_DEVICES=0,1
MODEL=llama
CONFIG="configs/${MODEL}.yml"
STAMP=$(date +%s)

if [ ! -d data ]; then
  axolotl preprocess "$CONFIG"   # once
fi
mkdir -p logs && echo "training 'it'"
cat > note.txt <<EOF
axolotl train wrong.yml
EOF
axolotl train "$CONFIG" \\
    --learning-rate 1e-5 > "logs/$STAMP.log" 2>&1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    for name in (*ENVIRONMENT, "CONFIG", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def read(folder: Path, text: str, command: str = "bash run.sh") -> Command:
    (folder / "run.sh").write_text(text)
    return read_command(shlex.split(command))


@pytest.mark.parametrize(
    "command", ["bash run.sh", "./run.sh", "bash -x ./run.sh", "nohup bash run.sh", "env A=1 ./run.sh"]
)
def test_a_usual_script_is_read(folder: Path, command: str):
    found = read(folder, USUAL, command)
    assert found.config == "configs/llama.yml"
    assert found.overrides == {"learning_rate": "1e-5"}
    assert found.environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert (found.reason, found.remark) == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        "axolotl train run.yml",
        "exec axolotl train run.yml",
        "axolotl train run.yml &\nwait",
        "C=run.yml; axolotl train $C",
        "axolotl train ${C:-run.yml}",
        "axolotl train 'run.yml' | tee log",
        "axolotl preprocess run.yml || exit 1\naxolotl train run.yml",
        "[ -f x ] && exit 0\naxolotl train run.yml",
        "(cd elsewhere; make)\naxolotl train run.yml",
        "for x in 1 2; do echo $x; done\naxolotl train run.yml",
        "train() {\n  echo no\n}\naxolotl train run.yml",
        "WANDB_NAME=$(date) axolotl train run.yml",
        "accelerate launch --num_processes 2 \\\n  -m axolotl.cli.train run.yml",
        'cd "$(dirname "$0")"\naxolotl train run.yml',
        'cd "$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"\naxolotl train run.yml',
        'axolotl train run.yml "$@"',
        "cat <<'X' > y\n$(axolotl train no.yml)\nX\naxolotl train run.yml",
    ],
)
def test_a_training_that_is_sure_is_found(folder: Path, text: str):
    assert read(folder, text).config == "run.yml"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for c in a.yml b.yml; do axolotl train $c; done", "in a branch, a loop or a function"),
        ("if true; then axolotl train run.yml; fi", "in a branch"),
        ("[ -f x ] && axolotl train run.yml", "in a branch"),
        ("test -f x || axolotl train run.yml", "in a branch"),
        ("t() { axolotl train run.yml; }\nt", "in a branch"),
        ("function t {\naxolotl train run.yml\n}\nt", "in a branch"),
        ("case $1 in\n a) axolotl train run.yml ;;\nesac", "in a branch"),
        ("axolotl train $CONFIG", "known only at run time"),
        ("CONFIG=$(ls *.yml)\naxolotl train $CONFIG", "known only at run time"),
        ("if true; then C=a.yml; fi\naxolotl train $C", "known only at run time"),
        ("C=a.yml\nread C\naxolotl train $C", "known only at run time"),
        ("axolotl train run.yml --micro-batch-size `nproc`", "known only at run time"),
        ("accelerate launch --num_processes $N -m axolotl.cli.train run.yml", "known only at run time"),
        ("export CUDA_VISIBLE_DEVICES=$(pick)\naxolotl train run.yml", "known only at run time"),
        ("cd $DATA\naxolotl train run.yml", "a folder known only at run time"),
        ("axolotl train https://host/run.yml", "URL"),
        ("exit 0\naxolotl train run.yml", "has no plain `axolotl train` line"),
        ("# axolotl train run.yml", "has no plain"),
        ("echo 'axolotl train run.yml", "has no plain"),
        ("python train.py run.yml", "has no plain"),
        ("axolotl preprocess run.yml", "has no plain"),
        ("", "has no plain"),
        ("bash run.sh", "has no plain"),
    ],
)
def test_what_is_not_sure_is_not_checked_and_the_reason_is_said(folder: Path, text: str, reason: str):
    found = read(folder, text)
    assert found.config is None
    assert reason in found.reason
    assert "\n" not in found.reason


def test_a_script_that_trains_twice_says_that_the_first_is_checked(folder: Path):
    found = read(folder, "axolotl train a.yml\naxolotl train b.yml\n")
    assert found.config == "a.yml"
    assert found.remark == "run.sh trains more than once; the first training is checked"


def test_a_folder_that_the_script_changes_to_is_that_of_its_files(folder: Path):
    (folder / "sub").mkdir()
    found = read(folder, "cd sub\naxolotl train run.yml --cloud c.yml")
    assert (found.config, found.folder, found.cloud) == (
        "sub/run.yml",
        "sub",
        "sub/c.yml",
    )


def test_arguments_and_the_environment_are_those_of_the_call(folder: Path, monkeypatch: pytest.MonkeyPatch):
    assert read(folder, "axolotl train $1 ${2:-}", "bash run.sh run.yml").config == "run.yml"
    assert read(folder, 'axolotl train "$@"', "./run.sh run.yml --seed 1").overrides == {"seed": "1"}
    monkeypatch.setenv("CONFIG", "run.yml")
    assert read(folder, "axolotl train $CONFIG").config == "run.yml"


def test_a_script_of_a_script_is_read(folder: Path):
    (folder / "inner.sh").write_text("axolotl train $1\n")
    assert read(folder, "bash inner.sh run.yml").config == "run.yml"


def test_a_wrapper_that_is_no_shell_script_changes_nothing(folder: Path):
    (folder / "tool").write_text("#!/usr/bin/env python\nimport axolotl\n")
    (folder / "accelerate").write_text('#!/bin/sh\nexec python accelerate "$@"\n')
    for command in ("./tool axolotl train run.yml", "./accelerate launch -m axolotl.cli.train run.yml"):
        assert read_command(shlex.split(command)).config == "run.yml"


def test_a_script_that_is_no_regular_file_is_not_opened(folder: Path):
    os.mkfifo(folder / "run.sh")
    assert read_command(["bash", "run.sh"]).config is None


@pytest.mark.parametrize(
    "text",
    [
        'A=\'x y\' B="z $HOME"; echo $A$B "$A" ${C:-d e} \'q\'"r"s\\ t',
        "X=1; echo a$X'b'\"c$X\" >/dev/null; echo $X 2>&1",
        'echo "a\\"b" \'c"d\' e\\$f # g',
        'echo "$1" "$@" $2',
    ],
)
def test_words_are_those_that_bash_makes(folder: Path, text: str):
    """Against bash itself, with an ``echo`` that prints its words; words that bash splits again are left out."""
    found = [
        line.words for line in commands(text, ("run", "one", "two"), dict(os.environ), "") if line.words[0] == "echo"
    ]
    probe = 'echo() { printf "%s\\037" "$@" >&3; printf "\\036" >&3; }\n'
    script = f"exec 3>&1\n{probe}{text}\n"
    done = subprocess.run(["bash", "-c", script, "run", "one", "two"], capture_output=True, text=True, check=True)
    expected = [line.split("\x1f")[:-1] for line in done.stdout.split("\x1e")[:-1]]
    assert [" ".join(words[1:]) for words in found] == [" ".join(words) for words in expected]
    assert not any(UNKNOWN in word for words in found for word in words)
