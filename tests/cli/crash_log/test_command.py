"""``advisor oom``: what it says of a death, and the plan from what was really free."""

import os
import re
import shlex
import sys
from pathlib import Path

import pexpect
import pytest
import yaml
from click.testing import CliRunner, Result

from advisor.cli.crash_log.next_steps import ADVICE
from advisor.cli.main import main
from advisor.report import terminal

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


def said(result: Result) -> str:
    """The screen as one line, wherever its lines end."""
    return " ".join(result.output.split())


def test_a_death_is_told_with_its_figures_and_a_plan_that_fits_what_was_free(folder: Path):
    result = oom(folder, MESSAGE.format(**FULL), "--gpus", "1x a100-40gb")
    assert result.exit_code == 0
    assert said(result).startswith(
        "Out of memory: GPU 0 asked for 7.8 GiB and had 4.0 free. It is full, not fragmented (0.4 GiB in pieces). "
    )
    assert "It died in the forward pass and loss (log.txt:3)." in said(result)
    assert "It needed 41.8 GiB or more at this moment; `advisor check` would have said so: it estimates" in said(result)
    assert re.search(r"edits? brings? it down to", said(result))


def test_the_card_is_read_off_the_log_where_nobody_names_it(folder: Path):
    result = oom(folder, MESSAGE.format(**FULL))
    assert result.exit_code == 0
    assert "on each of 1x A100-40GB" in result.output


def test_what_something_else_held_is_left_out_of_the_plan(folder: Path):
    held = FULL | {"free": "0.10", "used": "20.00", "allocated": "19.00", "pieces": "0.20", "tried": "2.00"}
    result = oom(folder, MESSAGE.format(**held), "--gpus", "1x a100-40gb")
    assert "something else held the rest" in said(result)
    assert "With 19.3 GiB for torch" in said(result)


def test_the_command_that_it_gives_writes_what_it_shows(folder: Path):
    held = FULL | {"free": "0.10", "used": "20.00", "allocated": "19.00", "pieces": "0.20", "tried": "2.00"}
    (folder / "run.yaml").write_text(f"{YAML}learning_rate: 2e-4\ndatasets: [{{path: some/rows, type: alpaca}}]\n")
    result = oom(folder, MESSAGE.format(**held), "--gpus", "1x a100-40gb")
    (command,) = re.findall(r"^  (advisor check (?:.*\\\n)*.*)$", result.output, re.MULTILINE)
    end = re.search(r"down to (\S+) GiB", said(result))
    written = CliRunner().invoke(main, shlex.split(command)[1:])
    assert end and written.exit_code == 0
    assert f"needs {end[1]} of 19.3 GiB" in said(written) and "run.yaml: fits" in said(written)


def test_an_estimate_below_the_card_is_not_said_to_have_foreseen_it(folder: Path):
    held = FULL | {"free": "0.10", "used": "20.00", "allocated": "19.00", "pieces": "0.20", "tried": "2.00"}
    (folder / "run.yaml").write_text(YAML.replace("8192", "4096"))
    result = oom(folder, MESSAGE.format(**held), "--gpus", "1x a100-40gb")
    assert "at this moment; the estimate is" in said(result)
    assert "would have said so" not in said(result)


PIECES = FULL | {"tried": "1.00", "pieces": "6.00", "free": "0.30"}


def test_memory_in_pieces_names_expandable_segments(folder: Path):
    (folder / "run.yaml").write_text(YAML.replace("8192", "4096"))
    result = oom(folder, MESSAGE.format(**PIECES), "--gpus", "1x a100-40gb")
    assert "It is fragmented: 6.0 GiB lie in pieces, none of them large enough." in said(result)
    assert "expandable_segments" in said(result)


def test_a_run_that_is_too_large_is_not_called_fragmented(folder: Path):
    (folder / "run.yaml").write_text(YAML.replace("8192", "16384"))
    result = oom(folder, MESSAGE.format(**PIECES), "--gpus", "1x a100-40gb")
    assert "Joining the pieces would not help: the forward pass and loss needs more than" in said(result)
    assert "expandable_segments" not in result.output


def test_a_full_card_says_so_by_its_own_numbers(folder: Path):
    full = FULL | {"tried": "0.06", "pieces": "0.15", "free": "0.05", "allocated": "38.00", "used": "39.00"}
    result = oom(folder, MESSAGE.format(**full), "--gpus", "1x a100-40gb")
    first = "Out of memory: GPU 0 asked for 61 MiB and had 51 MiB free. It is full, not fragmented (0.2 GiB in pieces)."
    assert said(result).startswith(first)
    assert "expandable_segments" not in result.output


def test_what_is_subtracted_is_said(folder: Path):
    low = FULL | {"tried": "2.00", "allocated": "30.00", "pieces": "0.10", "free": "0.50"}
    (folder / "run.yaml").write_text(YAML.replace("8192", "2048"))
    result = oom(folder, MESSAGE.format(**low), "--gpus", "1x a100-40gb")
    assert (
        "Of 39.4 GiB in total 8.8 GiB were outside torch (CUDA context, NCCL, other processes), so torch had 30.6"
        in said(result)
    )
    assert "torch had 30.6 GiB, and the estimate of the forward pass and loss was" in said(result)
    assert "too low: please report it, with the config." in said(result)


def test_without_a_low_estimate_the_plan_has_all_that_torch_had(folder: Path):
    held = FULL | {"capacity": "39.60", "free": "0.50", "allocated": "38.40", "pieces": "0.10", "tried": "1.00"}
    result = oom(folder, MESSAGE.format(**held), "--gpus", "8x a100-40gb")
    assert (
        "Of 39.6 GiB in total 0.6 GiB were outside torch (CUDA context, NCCL, other processes), so torch had 39.0"
        in said(result)
    )
    assert "With 39.0 GiB for torch on each of 8x A100-40GB" in said(result)


def test_a_request_larger_than_the_card_is_a_shape_problem_without_a_plan(folder: Path):
    for more in (("--config", "run.yaml"), ()):
        (folder / "log.txt").write_text(MESSAGE.format(**FULL | {"tried": "125537.00"}))
        result = CliRunner().invoke(main, ["oom", "log.txt", *more])
        assert result.exit_code == 0
        assert "125537.0 GiB at once, and the whole card has 39.4 GiB. That is a shape problem" in said(result)
        assert "sequence x vocabulary" in said(result)
        assert "plan" not in said(result) and "micro_batch_size" not in said(result)


def test_a_guess_is_marked_as_one(folder: Path):
    log = MESSAGE.format(**FULL | {"capacity": "23.68", "allocated": "20.00", "free": "0.10"}).replace("GPU 0", "GPU 5")
    result = oom(folder, log)
    assert "The card was guessed from its 23.68 GiB: taken as RTX 3090; it may be" in said(result)
    assert "Assuming 6 GPUs, from `GPU 5`." in said(result)
    assert "on each of 6x RTX 3090" in result.output
    result = oom(folder, log, "--gpus", "8x rtx-4090")
    assert "guessed" not in result.output


def test_a_stated_card_that_is_not_the_one_in_the_log_is_said(folder: Path):
    result = oom(folder, MESSAGE.format(**FULL), "--gpus", "1x a100-80gb")
    assert "The log's card has 39.4 GiB in total, so it is another card than the A100-80GB SXM" in said(result)


LOGS = (
    MESSAGE.format(**FULL),
    MESSAGE.format(**PIECES),
    MESSAGE.format(**FULL | {"tried": "125537.00"}),
    "exits with return code = -9\n",
    "Error out of memory at line 380 in file /src/csrc/pythonInterface.c\n",
    "No available memory for the cache blocks.\n",
    "MPS backend out of memory (MPS allocated: 17.66 GB, other allocations: 1.00 KB, max allowed: 18.13 GB). "
    "Tried to allocate 500.00 MB on private pool.\n",
    "ncclRemoteError: peer is gone\n",
)


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("more", [(), ("--config", "run.yaml", "--gpus", "1x a100-40gb")])
@pytest.mark.parametrize("log", LOGS)
def test_no_line_is_wider_than_the_terminal(
    folder: Path, log: str, more: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch
):
    (folder / "log.txt").write_text(log)
    monkeypatch.setattr(terminal, "width", lambda: columns)
    lines = CliRunner().invoke(main, ["oom", "log.txt", *more]).output.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[-1]


def test_the_terminal_itself_cuts_no_word(folder: Path):
    (folder / "log.txt").write_text(LOGS[0])
    process: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        ["-m", "advisor", "oom", "log.txt"],
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "dumb"},
        encoding="utf-8",
        dimensions=(50, 60),
        timeout=20,
    )
    lines = process.read().splitlines()
    process.close()
    assert max(map(len, lines)) in range(50, 61)
    assert "     plugins: [axolotl.integrations.liger.LigerPlugin]" in lines


def test_what_to_type_can_be_copied_however_long_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch):
    log = f"my logs/{'x' * 60}.log"
    (folder / "my logs").mkdir()
    (folder / log).write_text(LOGS[0])
    shown = CliRunner().invoke(main, ["oom", log]).output
    typed = re.search(r"^  (advisor oom .*\\\n.*)$", shown, re.MULTILINE)
    assert typed
    assert shlex.split(typed[1].replace("\\\n", "")) == ["advisor", "oom", log, "--config", "run.yaml"]


def test_the_remedies_are_numbered_through_and_only_the_last_change_the_training(folder: Path):
    (folder / "log.txt").write_text(LOGS[0])
    shown = CliRunner().invoke(main, ["oom", "log.txt"]).output
    same, _, changes = shown.partition("Changes training")
    assert re.findall(r"^  (\d)\.", same, re.MULTILINE) == ["1", "2", "3", "4"]
    assert re.findall(r"^  (\d)\.", changes, re.MULTILINE) == ["5", "6"]
    assert re.search(r"^  3\. recompute activations +gradient_checkpointing: true$", same, re.MULTILINE)


@pytest.mark.parametrize(
    "line", [line for one in ADVICE.values() for remedy in (*one.same, *one.changes) for line in remedy.lines]
)
def test_a_remedy_is_a_line_of_yaml_with_keys_that_axolotl_has(folder: Path, line: str):
    config = yaml.safe_load(YAML) | yaml.safe_load(line.replace("N ", "8 "))
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    shown = CliRunner().invoke(main, ["check", "--isolated", "--output-format", "concise", "run.yaml"]).output
    assert "run.yaml" in shown
    assert [rule for rule in ("unknown-key", "wrong-type", "removed-key", "deprecated-key") if rule in shown] == []


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            MESSAGE.format(**FULL),
            ("GPU 0 asked for 7.8 GiB and had 4.0 free", "card was guessed", "micro_batch_size: 1"),
        ),
        (
            MESSAGE.format(**PIECES),
            ("none of them large enough", "expandable_segments:True` first", "It died in the forward"),
        ),
        ("exits with return code = -9\n", ("the host killed the run", "dataloader_num_workers")),
        ("OOMKilled\n", ("the host killed the run",)),
        ("Error out of memory at line 380 in file /src/csrc/pythonInterface.c\n", ("paged optimizer", "host memory")),
        ("No available memory for the cache blocks.\n", ("vLLM found no room", "vllm: {gpu_memory_utilization")),
        (
            "MPS backend out of memory (MPS allocated: 17.66 GB, other allocations: 1.00 KB, max allowed: 18.13 GB). "
            "Tried to allocate 500.00 MB on private pool.\n",
            ("Apple's MPS asked for 0.5 GiB and had 17.7 GiB of its limit of 18.1 GiB allocated", "WATERMARK"),
        ),
        ("ncclRemoteError: peer is gone\n", ("Another rank died first", "the logs of all ranks")),
        ("NCCL error\n" + MESSAGE.format(**FULL), ("(line 1) followed on other ranks; they are not the cause",)),
    ],
)
def test_without_a_config_the_message_and_the_usual_steps_are_explained(folder: Path, log: str, words: tuple[str, ...]):
    (folder / "log.txt").write_text(log)
    result = CliRunner().invoke(main, ["oom", "log.txt"])
    assert result.exit_code == 0
    assert [word for word in words if word not in said(result)] == []
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
    assert "Out of host memory, most likely: the host killed the run." in said(result)
    assert "of 64.0 GiB on each node" in said(result)
    assert "dataloader_num_workers: 1" in said(result)


def test_another_rank(folder: Path):
    result = oom(folder, "Watchdog caught collective operation timeout\n", "--gpus", "2x a100-40gb")
    assert "Another rank died first" in result.output


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
