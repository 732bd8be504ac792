"""The line that says what takes so long: on a terminal alone, and gone when it is done."""

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from .terminal import LLAMA, Terminal

ERASED = "\r\x1b[K"
WAITING = """\
import sys
from advisor.progress import doing, each, shown
with shown(), doing("outer"):
    for item in each(["a", "b"], str.upper):
        with doing("inner \\x1b " + "x" * 200):
            sys.stdin.readline()
        sys.stdin.readline()
print("the end")
"""
SLOW_HUB = """\
import os, time
def hf_hub_download(name, file):
    while not os.path.exists("answer"):
        time.sleep(0.02)
    raise OSError("no such model")
"""


def spawn(*arguments: str, folder: Path, **environment: str) -> "pexpect.spawn[str]":
    return pexpect.spawn(
        sys.executable,
        list(arguments),
        cwd=str(folder),
        env={**os.environ, "TERM": "xterm", **environment},
        encoding="utf-8",
        dimensions=(24, 80),
        timeout=20,
        echo=False,
    )


def test_the_innermost_doing_is_shown_clipped_and_then_erased(tmp_path: Path):
    process = spawn("-c", WAITING, folder=tmp_path)
    process.expect_exact(ERASED + ("inner ? " + "x" * 200)[:79] + ERASED)
    process.sendline()
    process.expect_exact("1 of 2: A")
    process.sendline()
    process.expect_exact("inner")
    process.sendline()
    process.expect_exact("2 of 2: B")
    process.sendline()
    process.expect(pexpect.EOF)
    assert process.before.endswith(ERASED + "the end\r\n")


def test_the_hub_is_named_while_it_is_asked_and_nothing_of_it_stays(tmp_path: Path):
    (tmp_path / "huggingface_hub.py").write_text(SLOW_HUB)
    (tmp_path / "run.yaml").write_text("base_model: nobody/no-such-model\nsequence_len: 512\n")
    found = {"PYTHONPATH": str(tmp_path), "HF_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "NO_COLOR": "1"}
    process = spawn("-m", "advisor", "check", "--isolated", "--online", "run.yaml", folder=tmp_path, **found)
    process.expect_exact(ERASED + "fetching the config of nobody/no-such-model" + ERASED)
    (tmp_path / "answer").touch()
    process.expect(pexpect.EOF)
    _, _, rest = process.before.rpartition(ERASED)
    assert "unknown-model" in rest and "asking the hub" not in rest


@pytest.mark.parametrize("terminal", ["dumb", None])
def test_elsewhere_nothing_is_shown(tmp_path: Path, terminal: str | None):
    lines = "\n" * 4
    if terminal is None:
        done = subprocess.run([sys.executable, "-c", WAITING], input=lines, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("the end\n", "")
        return
    process = spawn("-c", WAITING, folder=tmp_path, TERM=terminal)
    process.send(lines)
    process.expect(pexpect.EOF)
    assert process.before == "the end\r\n"


def test_nothing_of_it_is_left_when_the_prompt_asks(tmp_path: Path):
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text(LLAMA)
    terminal = Terminal(tmp_path, "-p", ".", "--gpus", "8x a100-80gb")
    terminal.asks()
    assert "of 3: " not in terminal.raw.rpartition(ERASED)[2]
    terminal.last("q")
