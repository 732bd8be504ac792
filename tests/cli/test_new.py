"""``advisor new`` on the command line: files, exit codes, the screen, what it asks."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from advisor.cli.main import main

from .prompt.terminal import Asking

SNAPSHOTS = Path(__file__).parents[1] / "snapshots" / "new"
LORA = ("new", "Qwen/Qwen3-8B", "--gpus", "1x rtx-4090", "--tokens", "20M")
pytestmark = pytest.mark.usefixtures("_elsewhere")


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)


def call(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(main, list(words), env={"COLUMNS": "80", "NO_COLOR": "1", **environment})


def test_a_config_is_written_and_what_comes_next_is_said():
    done = call(*LORA)
    assert done.exit_code == 0, done.output
    assert yaml.safe_load(Path("run.yaml").read_text())["adapter"] == "lora"
    assert done.stdout.endswith("axolotl preprocess run.yaml\n         advisor launch -- axolotl train run.yaml\n")
    assert call("check", "--gpus", "1x rtx-4090", "run.yaml").exit_code == 0


def test_a_json_is_written_next_to_it():
    done = call("new", "Qwen/Qwen2.5-0.5B", "--gpus", "1x rtx-4090", "--method", "full", "-o", "deep/own.yaml")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in Path("deep").iterdir()) == ["own.deepspeed.json", "own.yaml"]
    assert call("check", "--gpus", "1x rtx-4090", "deep/own.yaml").exit_code == 0


@pytest.mark.parametrize("there", ["run.yaml", "run.deepspeed.json"])
def test_nothing_is_written_over_unless_forced(there: str):
    Path(there).write_text("mine")
    words = ("new", "Qwen/Qwen2.5-0.5B", "--gpus", "1x rtx-4090", "--method", "full")
    done = call(*words)
    assert done.exit_code == 2 and "--force" in done.stderr
    assert [path.name for path in Path().iterdir()] == [there] and Path(there).read_text() == "mine"
    assert call(*words, "--force").exit_code == 0
    assert Path(there).read_text() != "mine"


def test_where_nothing_fits_nothing_is_written():
    done = call("new", "Qwen/Qwen3-8B", "--gpus", "1x t4", "--method", "full")
    assert done.exit_code == 1 and not list(Path().iterdir())
    assert "does not fit" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("new", "Qwen/Qwen3-8C", "--gpus", "24GB"), "--model-config"),
        (("new", "Qwen/Qwen3-8B"), "--gpus"),
        (("new", "Qwen/Qwen3-8B", "--gpus", "24GB", "--method", "kto"), "examples/llama-3/qlora-1b-kto.yaml"),
        (("new", "Qwen/Qwen3-8B", "--gpus", "24GB", "--hours", "3"), "--tokens"),
        (("new", "Qwen/Qwen3-8B", "--gpus", "24GB", "--tokens", "many"), "--tokens 200M"),
        (("new", "Qwen/Qwen3-8B", "--gpus", "1x nothing"), "nothing"),
    ],
)
def test_what_must_be_stated_is_exit_code_2(words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("advisor.new.start.detected", lambda: None)
    done = call(*words)
    assert done.exit_code == 2 and said in " ".join(done.stderr.split()), done.output
    assert not list(Path().iterdir())


def test_a_folder_that_is_a_file_is_one_line():
    Path("deep").write_text("")
    done = call(*LORA, "-o", "deep/run.yaml")
    assert done.exit_code == 2 and "Traceback" not in done.output


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_no_line_is_wider_than_the_screen(columns: str):
    done = call("new", "Qwen/Qwen3-32B", "--gpus", "4x h100-80gb", "--tokens", "300M", COLUMNS=columns)
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lora-8b", LORA),
        ("full-32b", ("new", "Qwen/Qwen3-32B", "--gpus", "8x h100-80gb", "--method", "full", "--tokens", "200M")),
        ("dpo-8b", ("new", "meta-llama/Llama-3.1-8B-Instruct", "--gpus", "4x l40s", "--method", "dpo")),
        ("none", ("new", "meta-llama/Llama-3.3-70B-Instruct", "--gpus", "1x rtx-4090", "--method", "full")),
    ],
)
def test_the_screen_and_the_files_are_those_of_the_snapshot(name: str, words: tuple[str, ...]):
    done = call(*words)
    files = [f"--- {path.name}\n{path.read_text()}" for path in sorted(Path().iterdir(), reverse=True)]
    screen = "\n".join([f"$ advisor {' '.join(words)}", done.stdout, *files])
    snapshot = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(screen, encoding="utf-8")
    assert snapshot.read_text(encoding="utf-8") == screen, "`make snapshots` writes it"


class New(Asking):
    """``advisor new`` in a terminal."""

    QUESTION = re.compile(
        r"(A file of rows|Which GPUs|The model is|The rows are|The model is called|Write which)[^:\n]*: "
    )

    def __init__(self, folder: Path, *words: str, **given: Any) -> None:
        arguments = ["-m", "advisor", "new", *words]
        super().__init__(folder, sys.executable, arguments, 80, CUDA_VISIBLE_DEVICES="", **given)


def test_a_person_is_asked_what_is_open(tmp_path: Path):
    asking = New(tmp_path, "Qwen/Qwen3-8B")
    assert "A file of rows" in asking.asks()
    asking.process.sendline("")
    assert "[1x rtx-4090]" in asking.asks()
    asking.process.sendline("1x h100-80gb")
    shown = asking.asks()
    assert "Write which [lora]" in shown and "tokens/s" in shown
    asking.process.sendline("nonsense")
    asking.asks()
    asking.process.sendline("qlora")
    asking.process.expect("Written: run.yaml")
    asking.process.wait()
    assert yaml.safe_load((tmp_path / "run.yaml").read_text())["adapter"] == "qlora"


def test_defaults_alone_are_what_yes_takes(tmp_path: Path):
    asking = New(tmp_path, "Qwen/Qwen3-8B", "--gpus", "1x rtx-4090", "-o", "asked.yaml")
    for _ in range(2):
        asking.asks()
        asking.process.sendline("")
    asking.process.wait()
    assert call("new", "Qwen/Qwen3-8B", "--gpus", "1x rtx-4090", "-y").exit_code == 0
    assert Path("asked.yaml").read_text() == Path("run.yaml").read_text()


def test_the_end_of_the_input_writes_nothing(tmp_path: Path):
    asking = New(tmp_path, "Qwen/Qwen3-8B", "--gpus", "1x rtx-4090")
    asking.asks()
    asking.process.sendeof()
    asking.process.wait()
    assert asking.process.exitstatus == 130 and not list(tmp_path.iterdir())
