"""``advisor verify`` around a stand-in for axolotl: what it says of each end, and that nothing stays."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from advisor import estimate
from advisor.accuracy.own import own_runs
from advisor.cli.main import main
from advisor.run.history import history
from advisor.util import GIB

from ..llama import LLAMA_3_8B

CONFIG = """\
base_model: ./secret-model
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 1024
micro_batch_size: 1
gradient_accumulation_steps: 2
gradient_checkpointing: true
optimizer: adamw_torch_fused
bf16: true
learning_rate: 1e-4
output_dir: ./out
use_wandb: true
wandb_project: secret-project
saves_per_epoch: 2
auto_resume_from_checkpoints: true
datasets: [{path: secret/data, type: alpaca}]
"""
STUB = """\
#!{python}
import json, os, subprocess, sys, time
folder, doing = os.environ["ADVISOR_VERIFY"], json.loads(os.environ["STUB"])
config = next(word for word in sys.argv if word.endswith(".yaml"))
with open(os.environ["STUB_SAW"], "w") as saw:
    json.dump({{"words": sys.argv[1:], "config": open(config).read(), "folder": folder}}, saw)
if doing.get("phases"):
    figures = {{"rank": 0, "steps": 3, "seconds": 0.5, "host": 3 << 30, "during": "backward", "ended": not doing["code"]}}
    with open(folder + "/seen-0.json", "w") as file:
        json.dump({{**figures, "phases": doing["phases"]}}, file)
if doing.get("hangs"):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    open(os.environ["STUB_SAW"] + ".ready", "w").write(str(child.pid))
    time.sleep(600)
print(doing.get("said", ""))
sys.exit(doing["code"])
"""
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.81 GiB "
    "of which 1.50 GiB is free. Including non-PyTorch memory, this process has 138.00 GiB memory in use. Of the "
    "allocated memory 135.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)
FAILED = """\
Traceback (most recent call last):
  File "axolotl/train.py", line 1, in train
ValueError: the tokenizer has no such template
Traceback (most recent call last):
subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 1.
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config, a stand-in for axolotl and one for the driver of an H200, and a folder for what is temporary."""
    work, tools, temporary = (tmp_path / name for name in ("work", "tools", "temporary"))
    for path in (work, work / "secret-model", tools, temporary):
        path.mkdir()
    (work / "secret-model" / "config.json").write_text(json.dumps(LLAMA_3_8B))
    (work / "run.yaml").write_text(CONFIG)
    (tools / "axolotl").write_text(STUB.format(python=sys.executable))
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho '0, GPU-1, NVIDIA H200, 143771, 142000, 9.0, Disabled'\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    monkeypatch.chdir(work)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("STUB_SAW", str(tmp_path / "saw.json"))
    for name in ("CUDA_VISIBLE_DEVICES", "ADVISOR_GPUS", "CI"):
        monkeypatch.delenv(name, raising=False)
    history.cache_clear()
    return work


def stub(monkeypatch: pytest.MonkeyPatch, code: int = 0, factor: float | None = 1.0, **more: Any) -> None:
    """What the stand-in does: the foreseen peak times a factor, seen in each phase; None for no figures."""
    peaks: dict[str, Any] = {}
    if factor is not None:
        for phase in estimate("run.yaml", gpus="1x h200").phases:
            size = round(phase.bytes * factor)
            peaks[phase.name] = {"allocated": size, "reserved": round(1.05 * size)}
    monkeypatch.setenv("STUB", json.dumps({"code": code, "phases": peaks, **more}))


def verified(*words: str, config: str = CONFIG) -> Result:
    """The command, and nothing that it left."""
    result = CliRunner().invoke(main, ["verify", "run.yaml", *words], env={"COLUMNS": "200"})
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []
    assert Path("run.yaml").read_text() == config
    return result


def saw() -> dict[str, Any]:
    """What the stand-in was started with."""
    return json.loads(Path(os.environ["STUB_SAW"]).read_text())


def test_a_run_within_the_range_is_as_foreseen(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch)
    result = verified()
    assert result.exit_code == 0, result.output
    assert "As foreseen: " in result.stdout and "within its range" in result.stdout
    assert "forward and backward" in result.stdout and "+0.0%" in result.stdout


def test_a_run_outside_of_it_is_not_and_the_likely_term_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, factor=1.5)
    result = verified()
    assert result.exit_code == 1
    assert "Not as foreseen: " in result.stdout and "outside of its range" in result.stdout
    assert "Likely term: layers (" in result.stdout  # all phases are off by half, loading too


def test_what_is_trained_keeps_nothing_and_tells_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch)
    verified("--steps", "5")
    said, config = saw(), yaml.safe_load(saw()["config"])
    assert said["words"][0] == "train"
    assert (config["max_steps"], config["save_strategy"], config["eval_strategy"]) == (5, "no", "no")
    assert config["output_dir"].startswith(said["folder"]) and config["dataset_prepared_path"].startswith(
        said["folder"]
    )
    gone = {"use_wandb", "wandb_project", "saves_per_epoch", "auto_resume_from_checkpoints"}
    assert not gone & set(config)
    assert config["plugins"] == ["advisor.plugins.axolotl.AdvisorPlugin"]
    assert config["sequence_len"] == 1024 and config["base_model"] == "./secret-model"


@pytest.mark.parametrize(
    ("given", "started"),
    [
        (("axolotl", "train"), ["train", "CONFIG"]),
        (("axolotl", "train", "run.yaml", "--micro-batch-size", "1"), ["train", "CONFIG", "--micro-batch-size", "1"]),
        (("axolotl", "train", "--", "--num_processes", "1"), ["train", "CONFIG", "--", "--num_processes", "1"]),
        (("env", "A=1", "axolotl", "train"), ["train", "CONFIG"]),
    ],
)
def test_the_command_is_started_as_it_is_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], started: list[str]
):
    stub(monkeypatch)
    assert verified("--", *given).exit_code == 0
    assert [word if not word.endswith("config.yaml") else "CONFIG" for word in saw()["words"]] == started


def test_the_record_and_the_block_name_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    stub(monkeypatch)
    printed = verified().stdout
    (line,) = (tmp_path / "state" / "axolotl-advisor" / "runs.jsonl").read_text().splitlines()
    assert json.loads(line)["family"] == "llama" and json.loads(line)["gpu"] == "h200"
    assert line in printed
    block = printed.partition("```json\n")[2].partition("\n```")[0]
    assert "secret" not in line + block and str(tmp_path) not in line + block and "/" not in block


def test_the_block_is_read_from_an_issue_and_estimated_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch)
    block = verified().stdout.partition("```json\n")[2].partition("\n```")[0]
    Path("issue.md").write_text(f"It disagrees!\n\n```json\n{block}\n```\n> {block}\n")
    first, second = own_runs("issue.md")
    assert (first.line, second.line) == (4, 6)
    result = CliRunner().invoke(main, ["accuracy", "--runs", "issue.md", "--output-format", "json"])
    assert result.exit_code == 0, result.output
    groups = json.loads(result.stdout)["groups"]
    assert [group["errors"]["runs"] for group in groups] == [2] and groups[0]["errors"]["median"] < 0.01


def test_a_block_that_is_cut_is_an_error_at_its_line(folder: Path):
    Path("issue.md").write_text('hello\n{"advisor_verify": 1, "gpus": "1x h200"\n')
    result = CliRunner().invoke(main, ["accuracy", "--runs", "issue.md"])
    assert result.exit_code == 2 and "issue.md:2" in result.stderr and "not whole" in result.stderr


def test_what_was_seen_stands_below_the_screens_of_the_same_run(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, factor=1.01)
    verified()
    history.cache_clear()
    line = f"where {estimate('run.yaml', gpus='1x h200').allocated_peak / GIB:.1f} was foreseen"
    for command in ("check", "estimate"):
        told = CliRunner().invoke(main, [command, "--gpus", "1x h200", "run.yaml"], env={"COLUMNS": "200"})
        last = " ".join(told.stdout.rpartition("\n\n")[2].split())
        assert last.startswith("seen on this machine: ") and line in last
        for words in (("--isolated",), ("--gpus", "2x h200"), ("--output-format", "json"), ("--gpus", "1x h100")):
            other = CliRunner().invoke(main, [command, "--gpus", "1x h200", *words, "run.yaml"])
            assert "seen on this machine" not in other.stdout
        in_ci = CliRunner().invoke(main, [command, "--gpus", "1x h200", "run.yaml"], env={"CI": "1"})
        assert "seen on this machine" not in in_ci.stdout
    quiet = CliRunner().invoke(main, ["check", "-q", "--gpus", "1x h200", "run.yaml"])
    assert "seen on this machine" not in quiet.stdout


def test_records_move_no_verdict(folder: Path, monkeypatch: pytest.MonkeyPatch):
    before = estimate("run.yaml", gpus="1x h200")
    stub(monkeypatch, factor=1.5)
    verified()
    history.cache_clear()
    said = CliRunner().invoke(main, ["check", "--gpus", "1x h200", "--output-format", "json", "run.yaml"])
    memory = json.loads(said.stdout)["runs"][0]["memory"]
    assert memory["allocated_peak"] == before.allocated_peak
    assert memory["needed"] == {"low": before.needed.low, "high": before.needed.high}


def test_out_of_memory_is_an_answer(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, code=1, said=OOM)
    result = verified()
    assert result.exit_code == 1
    assert "ran out of memory in backward, with 137.0 GiB needed: " in result.stderr
    assert "not as foreseen" in result.stderr and "advisor oom" in result.stderr
    assert result.stdout == ""


def test_a_training_that_fails_is_one_line_with_its_own_words(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, code=1, factor=None, said=FAILED)
    result = verified()
    assert result.exit_code == 2
    assert "the training failed: ValueError: the tokenizer has no such template" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in verified("-v").stderr


def test_what_a_check_foresees_is_said_of_a_training_that_fails(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, code=1, factor=None, said=FAILED)
    config = CONFIG + "warmup_steps: 3\nwarmup_ratio: 0.1\n"
    (folder / "run.yaml").write_text(config)
    said = " ".join(verified(config=config).stderr.split())
    assert "`advisor check run.yaml` says that it stops: schedule-keys-exclude-each-other" in said


def test_a_plugin_that_was_not_there_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch, factor=None)
    result = verified()
    assert result.exit_code == 2 and "install axolotl-advisor next to axolotl" in result.stderr


def test_without_axolotl_it_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder.parent / "tools" / "axolotl").unlink()
    result = verified()
    assert result.exit_code == 2 and "axolotl is not installed" in result.stderr


def test_without_a_gpu_it_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    result = verified()
    assert result.exit_code == 2 and "there is no GPU here" in result.stderr and "--cpu" in result.stderr


def test_a_script_is_left_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch):
    stub(monkeypatch)
    Path("train.sh").write_text("axolotl train run.yaml\n")
    result = verified("--", "bash", "train.sh")
    assert result.exit_code == 2 and "in a script, which stays as it is" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.yaml",), "there is no such file"),
        (("run.yaml", "--", "axolotl", "train", "other.yaml"), "the command trains other.yaml"),
        (("run.yaml", "--", "axolotl", "preprocess"), "nothing to verify"),
        (("run.yaml", "--", "axolotl", "train", "run.yaml", "--cloud", "cloud.yaml"), "a cloud trains this"),
    ],
)
def test_what_cannot_be_verified(folder: Path, words: tuple[str, ...], said: str):
    result = CliRunner().invoke(main, ["verify", *words])
    assert result.exit_code == 2 and said in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_is_one_line_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
):
    stub(monkeypatch, factor=None, hangs=True)
    command = [sys.executable, "-m", "advisor", "verify", "run.yaml"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ready = Path(os.environ["STUB_SAW"] + ".ready")
    while not (ready.exists() and ready.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    printed, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert printed == "" and len(said.strip().splitlines()) == 1
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []
    left = Path("/proc") / ready.read_text() / "status"
    assert not left.exists() or "zombie" in left.read_text()
