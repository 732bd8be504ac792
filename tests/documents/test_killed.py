"""A process that is killed at any step of writing leaves each file whole, old or new."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import os, signal, sys

function, nth, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
calls = 0

def now():
    global calls
    calls += 1
    if calls == nth:
        os.kill(os.getpid(), getattr(signal, name))

class HalfWritten:
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.file.close()
    def __getattr__(self, wanted):
        return getattr(self.file, wanted)
    def write(self, content):
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        now()
        return self.file.write(content[len(content) // 2 :])

def killing(real, before):
    def call(*args, **kwargs):
        if before:
            now()
        result = real(*args, **kwargs)
        if not before:
            now()
        return result
    return call

def arm():
    wanted, _, when = function.partition(" ")
    if wanted == "write":
        real = os.fdopen
        os.fdopen = lambda *args: HalfWritten(real(*args))
    else:
        setattr(os, wanted, killing(getattr(os, wanted), when == "before"))
"""
STEPS = ["open after", "write", "fsync before", "fsync after", "chmod after", "replace before", "replace after"]
SIGNALS = {"SIGTERM": {128 + signal.SIGTERM}, "SIGKILL": {-signal.SIGKILL}}
CONFIG = """\
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
sequence_len: 4096
micro_batch_size: 4
gradient_accumulation_steps: 2
sample_packing: true
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
learning_rate: 1e-5
"""


def killed(folder: Path, does: str, step: str, nth: int, name: str) -> int:
    """The exit code of a process that does something, and is sent a signal at the nth time of a step."""
    command = [sys.executable, "-c", PROGRAM + does, step, str(nth), name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode in SIGNALS[name] | {0}, done.stderr
    return done.returncode


def shown(folder: Path) -> dict[str, bytes]:
    """The files that anybody sees; temporaries begin with a dot."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("nth", [1, 2])
def test_each_file_is_old_or_new_and_whole(tmp_path: Path, step: str, nth: int, name: str):
    old = {"a.yaml": b"old a" * 9, "b.json": b"old b" * 9}
    new = {"a.yaml": b"new a" * 8, "b.json": b"new b" * 8, "c.json": b"new c" * 8}
    for file, content in old.items():
        (tmp_path / file).write_bytes(content)
    does = f"\nfrom advisor.documents import write_all\narm()\nwrite_all({new!r})\n"
    assert killed(tmp_path, does, step, nth, name) in SIGNALS[name]
    found = shown(tmp_path)
    for file, content in found.items():
        assert content in (old.get(file), new[file]), file
    assert old.keys() <= found.keys()
    if name == "SIGTERM":
        assert found == old and not hidden(tmp_path), "what can be undone is undone"
    again = subprocess.run(
        [sys.executable, "-c", f"from advisor.documents import write_all\nwrite_all({new!r})"], cwd=tmp_path
    )
    assert again.returncode == 0 and shown(tmp_path) == new, "what a killed process left is in nobody's way"


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("step", ["write", "fsync after", "replace before", "replace after"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_fix_that_is_killed_leaves_configs_that_can_be_read(tmp_path: Path, step: str, nth: int, name: str):
    (tmp_path / "run.yaml").write_text(CONFIG)
    arguments = ["check", "--isolated", "--gpus", "8x a100-80gb", "--ignore", "fused-kernels", "run.yaml"]
    does = f"\nfrom advisor.cli.main import main\nimport advisor.cli.fix\narm()\nmain({[*arguments, '--fix']!r})\n"
    killed(tmp_path, does, step, nth, name)
    text = (tmp_path / "run.yaml").read_text()
    made = tmp_path / "run.zero-2.json"
    if text != CONFIG:
        assert "deepspeed: run.zero-2.json" in text and text.endswith("\n")
        assert made.exists(), "the YAML must not name a JSON that was not written"
    if made.exists():
        assert json.loads(made.read_text())["zero_optimization"]["stage"] == 2
    advisor = Path(sys.executable).with_name("advisor")
    done = subprocess.run(
        [advisor, *arguments], cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"}
    )
    assert done.returncode == (1 if text == CONFIG else 0), done.stdout + done.stderr
