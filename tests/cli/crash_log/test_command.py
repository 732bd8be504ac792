"""``advisor oom``: what it says of a death, and the plan from what was really free."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from advisor.cli.main import main

YAML = """\
base_model: meta-llama/Llama-3.1-8B
sequence_len: 8192
micro_batch_size: 2
gradient_accumulation_steps: 1
gradient_checkpointing: true
attn_implementation: flash_attention_2
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
"""
MESSAGE = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "trainer.py", line 1, in compute_loss\n'
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of "
    "{capacity} GiB of which {free} GiB is free. Including non-PyTorch memory, this process has {used} GiB memory in "
    "use. Of the allocated memory {allocated} GiB is allocated by PyTorch, and {pieces} GiB is reserved by PyTorch but "
    "unallocated.\n"
)
FULL = {"tried": "7.83", "capacity": "39.39", "free": "4.00", "used": "35.00", "allocated": "34.00", "pieces": "0.40"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run.yaml").write_text(YAML)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def oom(folder: Path, log: str, *more: str) -> Result:
    (folder / "log.txt").write_text(log)
    return CliRunner().invoke(main, ["oom", "log.txt", "--config", "run.yaml", *more])


def test_a_death_is_told_with_its_figures_and_a_plan_that_fits_what_was_free(folder: Path):
    result = oom(folder, MESSAGE.format(**FULL), "--gpus", "1x a100-40gb")
    assert result.exit_code == 0
    first = result.output.splitlines()[0]
    assert first.startswith("log.txt:3: GPU 0 was full in the forward and loss: 7.8 GiB more were asked for")
    assert "this moment needed 41.8 GiB or more" in result.output
    assert "which foresaw it" in result.output
    assert "plan for run.yaml" in result.output
    assert "smaller-micro-batch" in result.output


def test_the_card_is_read_off_the_log_where_nobody_names_it(folder: Path):
    result = oom(folder, MESSAGE.format(**FULL))
    assert result.exit_code == 0
    assert "on each of 1x A100-40GB" in result.output


def test_what_something_else_held_is_left_out_of_the_plan(folder: Path):
    held = FULL | {"free": "0.10", "used": "20.00", "allocated": "19.00", "pieces": "0.20", "tried": "2.00"}
    result = oom(folder, MESSAGE.format(**held), "--gpus", "1x a100-40gb")
    assert "something else held the rest" in result.output
    assert "with 19.3 GiB for torch" in result.output


def test_memory_in_pieces_names_expandable_segments(folder: Path):
    pieces = FULL | {"tried": "1.00", "pieces": "6.00", "free": "0.30"}
    result = oom(folder, MESSAGE.format(**pieces), "--gpus", "1x a100-40gb")
    assert "expandable_segments" in result.output


def test_a_host_that_ran_out(folder: Path):
    result = oom(folder, "exitcode  : -9 (pid: 1)\n", "--gpus", "2x a100-40gb host=64GiB")
    assert result.exit_code == 0
    assert "the host killed the run" in result.output
    assert "of 64.0 GiB on each node" in result.output


def test_another_rank(folder: Path):
    result = oom(folder, "Watchdog caught collective operation timeout\n", "--gpus", "2x a100-40gb")
    assert "another rank died first" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.txt", "--config", "run.yaml"], "no.txt"),
        (["quiet.txt", "--config", "run.yaml"], "tells of no death"),
        (["bare.txt", "--config", "run.yaml"], "no GPUs are stated"),
        (["bare.txt", "--config", "no.yaml"], "no.yaml"),
        (["quiet.txt"], "--config"),
    ],
)
def test_what_cannot_be_answered_exits_with_two(folder: Path, arguments: list[str], words: str):
    (folder / "quiet.txt").write_text("all is well\n")
    (folder / "bare.txt").write_text("CUDA error: out of memory\n")
    result = CliRunner().invoke(main, ["oom", *arguments])
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output
