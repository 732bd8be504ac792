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
    assert first.startswith("log.txt:3: GPU 0 was full in the forward and loss: 7.8 GiB more were requested")
    assert "this moment needed 41.8 GiB or more" in result.output
    assert "which predicted it" in result.output
    assert "plan for run.yaml" in result.output
    assert "then it fits" in result.output


def test_the_card_is_read_off_the_log_where_nobody_names_it(folder: Path):
    result = oom(folder, MESSAGE.format(**FULL))
    assert result.exit_code == 0
    assert "on each of 1x A100-40GB" in result.output


def test_what_something_else_held_is_left_out_of_the_plan(folder: Path):
    held = FULL | {"free": "0.10", "used": "20.00", "allocated": "19.00", "pieces": "0.20", "tried": "2.00"}
    result = oom(folder, MESSAGE.format(**held), "--gpus", "1x a100-40gb")
    assert "something else held the rest" in result.output
    assert "with 19.3 GiB for torch" in result.output


PIECES = FULL | {"tried": "1.00", "pieces": "6.00", "free": "0.30"}


def test_memory_in_pieces_names_expandable_segments(folder: Path):
    (folder / "run.yaml").write_text(YAML.replace("8192", "4096"))
    result = oom(folder, MESSAGE.format(**PIECES), "--gpus", "1x a100-40gb")
    assert "had no piece large enough" in result.output
    assert "expandable_segments" in result.output


def test_a_run_that_is_too_large_is_not_called_fragmented(folder: Path):
    (folder / "run.yaml").write_text(YAML.replace("8192", "16384"))
    result = oom(folder, MESSAGE.format(**PIECES), "--gpus", "1x a100-40gb")
    assert "joining the pieces would not help" in result.output
    assert "expandable_segments" not in result.output


def test_a_full_card_says_so_by_its_own_numbers(folder: Path):
    full = FULL | {"tried": "0.06", "pieces": "0.15", "free": "0.05", "allocated": "38.00", "used": "39.00"}
    result = oom(folder, MESSAGE.format(**full), "--gpus", "1x a100-40gb")
    assert "full, not fragmented: 0.2 GiB in pieces and 51 MiB free are a small part of the card" in result.output
    assert "expandable_segments" not in result.output


def test_what_is_subtracted_is_said(folder: Path):
    low = FULL | {"tried": "2.00", "allocated": "30.00", "pieces": "0.10", "free": "0.50"}
    (folder / "run.yaml").write_text(YAML.replace("8192", "2048"))
    result = oom(folder, MESSAGE.format(**low), "--gpus", "1x a100-40gb")
    assert (
        "39.4 GiB in total, less 8.8 GiB outside torch (CUDA context, NCCL, other processes) leave 30.6"
        in result.output
    )
    assert "torch had 30.6 GiB, and the estimate of the forward and loss was" in result.output


def test_without_a_low_estimate_the_plan_has_all_that_torch_had(folder: Path):
    held = FULL | {"capacity": "39.60", "free": "0.50", "allocated": "38.40", "pieces": "0.10", "tried": "1.00"}
    result = oom(folder, MESSAGE.format(**held), "--gpus", "8x a100-40gb")
    assert (
        "39.6 GiB in total, less 0.6 GiB outside torch (CUDA context, NCCL, other processes) leave 39.0"
        in result.output
    )
    assert "with 39.0 GiB for torch on each of 8x A100-40GB" in result.output


def test_a_request_larger_than_the_card_is_a_shape_problem_without_a_plan(folder: Path):
    for more in (("--config", "run.yaml"), ()):
        (folder / "log.txt").write_text(MESSAGE.format(**FULL | {"tried": "125537.00"}))
        result = CliRunner().invoke(main, ["oom", "log.txt", *more])
        assert result.exit_code == 0
        assert "a shape problem, not a full card" in result.output
        assert "sequence x vocabulary" in result.output
        assert "plan" not in result.output


def test_a_guess_is_marked_as_one(folder: Path):
    log = MESSAGE.format(**FULL | {"capacity": "23.68", "allocated": "20.00", "free": "0.10"}).replace("GPU 0", "GPU 5")
    result = oom(folder, log)
    assert "card guessed from its 23.68 GiB: taken as RTX 3090; it may be" in result.output
    assert "number guessed from `GPU 5`: at least 6 GPUs" in result.output
    assert "on each of 6x RTX 3090" in result.output
    result = oom(folder, log, "--gpus", "8x rtx-4090")
    assert "guessed" not in result.output


def test_a_stated_card_that_is_not_the_one_in_the_log_is_said(folder: Path):
    result = oom(folder, MESSAGE.format(**FULL), "--gpus", "1x a100-80gb")
    assert "the log's card has 39.4 GiB in total, so it is not a A100-80GB SXM" in result.output


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (MESSAGE.format(**FULL), ("GPU 0 was full in the forward and loss", "card guessed", "micro_batch_size: 1")),
        (MESSAGE.format(**PIECES), ("had no piece large enough", "expandable_segments", "39.4 GiB in total, less")),
        ("exits with return code = -9\n", ("the host killed the run", "dataloader_num_workers")),
        ("OOMKilled\n", ("the host killed the run",)),
        ("Error out of memory at line 380 in file /src/csrc/pythonInterface.c\n", ("paged optimizer", "host memory")),
        ("No available memory for the cache blocks.\n", ("vLLM found no room", "vllm.gpu_memory_utilization")),
        (
            "MPS backend out of memory (MPS allocated: 17.66 GB, other allocations: 1.00 KB, max allowed: 18.13 GB). "
            "Tried to allocate 500.00 MB on private pool.\n",
            ("Apple's MPS reached its limit: 0.5 GiB more", "WATERMARK"),
        ),
        ("ncclRemoteError: peer is gone\n", ("another rank died first", "the logs of all ranks")),
        ("NCCL error\n" + MESSAGE.format(**FULL), ("(line 1) followed on other ranks; they are not the cause",)),
    ],
)
def test_without_a_config_the_message_and_the_usual_steps_are_explained(folder: Path, log: str, words: tuple[str, ...]):
    (folder / "log.txt").write_text(log)
    result = CliRunner().invoke(main, ["oom", "log.txt"])
    assert result.exit_code == 0
    assert all(word in result.output for word in words)
    assert "plan for" not in result.output


@pytest.mark.parametrize("more", [(), ("--config", "run.yaml")])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[rank0]: Tr", "[rank999999999999999]: Tr"),
        ("[rank0]: Tr", "rank " + "5" * 5000 + "\nTr"),
        ("7.83 GiB", "9" * 400 + " TiB"),
        ("GPU 0", "GPU " + "7" * 1400),
    ],
)
def test_absurd_figures_exit_with_two_and_one_error(folder: Path, more: tuple[str, ...], old: str, new: str):
    (folder / "log.txt").write_text(MESSAGE.format(**FULL).replace(old, new))
    result = CliRunner().invoke(main, ["oom", "log.txt", *more])
    assert result.exit_code == 2
    assert "error: `" in result.output and "log.txt:" in result.output
    assert len(result.output) < 300 and "Traceback" not in result.output


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
        (["quiet.txt", "--config", "run.yaml"], "no out-of-memory error"),
        (["bare.txt", "--config", "run.yaml"], "no GPUs are stated"),
        (["bare.txt", "--config", "no.yaml"], "no.yaml"),
        (["quiet.txt"], "no out-of-memory error"),
    ],
)
def test_what_cannot_be_answered_exits_with_two(folder: Path, arguments: list[str], words: str):
    (folder / "quiet.txt").write_text("all is well\n")
    (folder / "bare.txt").write_text("CUDA error: out of memory\n")
    result = CliRunner().invoke(main, ["oom", *arguments])
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output
