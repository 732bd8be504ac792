"""``advisor launch`` of a run that does not fit, at a pseudo-terminal: it asks, and writes only what was said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli.question import own_files

from .terminal import ADVISE, ASKED, CONFIG, LAUNCH, TOO_LARGE, Terminal

WRITTEN = ("liger_fused_linear_cross_entropy: true", "# a comment that stays")


def text(folder: Path) -> str:
    return (folder / "run.yml").read_text()


def by_fix(folder: Path) -> str:
    """What ``advisor check --fix`` makes of the config."""
    other = folder / "other"
    other.mkdir()
    (other / "run.yml").write_text(CONFIG)
    command = [sys.executable, "-m", "advisor", "check", "--fix", "--gpus", "1x rtx-4090", "--stack", "installed"]
    subprocess.run([*command, "run.yml"], cwd=other, capture_output=True, check=False)
    return text(other)


def test_y_writes_what_fix_writes_checks_again_and_starts(folder: Path):
    terminal = Terminal(folder)
    asked = terminal.asks()
    first, second = asked.splitlines()
    assert first.startswith("advisor: does not fit: 28.1 of 23.1 GiB. 1 edit, same training: ")
    assert first.endswith("% time") and second == ASKED
    assert text(folder) == CONFIG
    shown = terminal.last("y")
    assert "wrote run.yml" in shown and "advisor: fits " in shown and "; about " in shown
    assert shown.splitlines()[-1] == "started train run.yml" and terminal.code == 7
    assert text(folder) == by_fix(folder) != CONFIG
    assert all(part in text(folder) for part in WRITTEN)


@pytest.mark.parametrize("no", ["n", "", "\x04"], ids=["n", "enter", "end of input"])
def test_anything_but_a_yes_is_a_no(folder: Path, no: str):
    terminal = Terminal(folder)
    terminal.asks()
    if no == "\x04":
        terminal.process.sendeof()
        shown = terminal.end()
    else:
        shown = terminal.last(no)
    assert terminal.code == 1 and text(folder) == CONFIG
    assert "started" not in shown and "Traceback" not in shown


def test_ctrl_c_ends_with_130_and_writes_nothing(folder: Path):
    terminal = Terminal(folder)
    terminal.asks()
    terminal.process.sendintr()
    shown = terminal.end()
    assert terminal.code == 130 and text(folder) == CONFIG
    assert "interrupted: nothing was written" in shown and "Traceback" not in shown


@pytest.mark.slow
def test_the_diff_and_the_other_ways_are_shown_and_it_asks_again(folder: Path):
    terminal = Terminal(folder)
    terminal.asks()
    shown = terminal.answer("x")
    assert "one letter is expected: y, n, d, e, o" in shown
    shown = terminal.answer("d")
    assert "+++ b/run.yml" in shown and "+liger_fused_linear_cross_entropy: true" in shown and shown.endswith(ASKED)
    shown = terminal.answer("o")
    assert "way out" in shown and "on 2x RTX 4090" in shown and shown.endswith(ASKED)
    assert text(folder) == CONFIG
    terminal.last("n")
    assert terminal.code == 1 and text(folder) == CONFIG


@pytest.mark.slow
def test_each_step_is_asked_about_and_what_was_accepted_starts_if_it_suffices(folder: Path):
    terminal = Terminal(folder)
    terminal.asks()
    shown = terminal.answer("e")
    for _ in range(9):
        if "Apply this edit" not in shown:
            break
        terminal.process.sendline("y")
        if terminal.process.expect([r"Apply this edit \[[a-z?,]+\]\? ", "started train run.yml"]) == 1:
            break
    terminal.end()
    assert terminal.code == 7 and WRITTEN[0] in text(folder)


@pytest.mark.slow
def test_steps_that_do_not_suffice_are_written_and_start_nothing(folder: Path):
    large = CONFIG.replace("Llama-3.2-1B", "Llama-3.1-8B").replace("gradient_checkpointing: true\n", "")
    (folder / "run.yml").write_text(large)
    terminal = Terminal(folder)
    terminal.asks()
    terminal.answer("e")
    terminal.answer("y")
    shown = terminal.last("q")
    assert "wrote run.yml" in shown and "advisor: does not fit: " in shown and "started" not in shown
    assert terminal.code == 1


@pytest.mark.slow
def test_steps_that_are_all_refused_write_nothing(folder: Path):
    terminal = Terminal(folder)
    terminal.asks()
    terminal.answer("e")
    shown = terminal.last("q")
    assert terminal.code == 1 and text(folder) == CONFIG and "wrote" not in shown


@pytest.mark.slow
def test_without_a_way_of_the_same_training_there_is_no_y(folder: Path):
    (folder / "run.yml").write_text(TOO_LARGE)
    terminal = Terminal(folder)
    first, second = terminal.asks().splitlines()
    assert "No edits make it fit with the same training" in first
    assert second == "Nothing to apply. [n]o, [o]ther ways "
    assert "one letter is expected: n, o" in terminal.answer("y")
    shown = terminal.answer("o")
    assert "way out" in shown and "B" in shown
    terminal.last("")
    assert terminal.code == 1 and text(folder) == TOO_LARGE


FATAL = """\
base_model: Qwen/Qwen2.5-0.5B
gradient_checkpointing: true
bf16: true
sequence_len: 512
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
learning_rate: 1e-5
fsdp_version: 2
fsdp_config:
  auto_wrap_policy: TRANSFORMER_BASED_WRAP
  activation_checkpointing: true
"""


def test_an_error_that_safe_edits_repair_is_asked_about_too(folder: Path):
    (folder / "run.yml").write_text(FATAL)
    terminal = Terminal(folder, *LAUNCH[:4], "8x a100-80gb", *LAUNCH[5:])
    first, second = terminal.asks().splitlines()
    assert first.startswith("advisor: does not start: ") and " repairs it" in first.replace("repair it", "repairs it")
    assert second.startswith("Apply and start? ")
    shown = terminal.last("y")
    assert shown.splitlines()[-1] == "started train run.yml" and terminal.code == 7


@pytest.mark.slow
def test_an_error_that_no_safe_edit_repairs_is_told_in_five_lines(folder: Path):
    (folder / "run.yml").write_text(CONFIG.replace("learning_rate", "optimizer: adamw_torchh\nlearning_rate"))
    terminal = Terminal(folder, *LAUNCH[:4], "1x h100-80gb", *LAUNCH[5:])
    shown = terminal.end()
    assert shown.startswith("advisor: does not start: ") and len(shown.splitlines()) <= 5
    assert terminal.code == 1


@pytest.mark.slow
def test_keys_of_the_command_line_that_edits_would_change_leave_no_y(folder: Path):
    (folder / "run.yml").write_text(CONFIG.replace("micro_batch_size: 4", "micro_batch_size: 1"))
    terminal = Terminal(folder, *LAUNCH, "--micro_batch_size=64", "--no-gradient-checkpointing")
    first, second = terminal.asks().splitlines()
    assert "`micro_batch_size`" in first and "change on the command line" in first
    assert second.startswith("Nothing to apply.")
    terminal.last("n")
    assert terminal.code == 1


@pytest.mark.parametrize(
    "environment",
    [{"RANK": "1"}, {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"}, {"LOCAL_RANK": "2"}],
    ids=["rank", "srun", "local rank"],
)
def test_another_rank_reads_nothing(folder: Path, environment: dict[str, str]):
    terminal = Terminal(folder, **environment)
    assert terminal.end() == "advisor: blocked by does-not-fit: see rank 0's output\n"
    assert terminal.code == 1 and text(folder) == CONFIG


@pytest.mark.slow
def test_the_first_of_many_ranks_writes_and_does_not_start_alone(folder: Path):
    terminal = Terminal(folder, SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="4")
    assert terminal.asks().endswith("Apply? [y]es, [n]o, [d]iff, [e]ach step, [o]ther ways ")
    shown = terminal.last("y")
    assert "wrote run.yml" in shown and "start the command again" in shown and "started" not in shown
    assert terminal.code == 1 and text(folder) != CONFIG


@pytest.mark.slow
def test_the_first_rank_of_one_asks(folder: Path):
    terminal = Terminal(folder, SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="1")
    assert terminal.asks().endswith(ASKED)
    terminal.last("n")


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["</dev/null", "<&-", "2>&-", "2>/dev/full", "2>errors"])
def test_without_a_terminal_on_both_sides_nobody_is_asked(folder: Path, streams: str):
    terminal = Terminal(folder, streams=streams)
    shown = terminal.end()
    assert terminal.code == 1 and text(folder) == CONFIG
    assert "Apply" not in shown and "Traceback" not in shown
    if streams.startswith("<"):
        assert len(shown.splitlines()) <= 5 and shown.startswith("advisor: does not fit: ")


@pytest.mark.slow
def test_in_ci_nobody_is_asked(folder: Path):
    terminal = Terminal(folder, CI="true")
    assert "Apply" not in terminal.end()
    assert terminal.code == 1


@pytest.mark.slow
def test_in_the_background_nobody_is_asked(folder: Path):
    command = f"set -m; {sys.executable} {' '.join(LAUNCH[:4])} '1x rtx-4090' -- axolotl train run.yml & wait $!"
    terminal = Terminal(folder, "-c", "import os, sys; os.execvp('bash', ['bash', '-c', sys.argv[1]])", command)
    assert "Apply" not in terminal.end()
    assert terminal.code == 1


@pytest.mark.slow
def test_a_file_outside_of_the_repository_is_not_offered(folder: Path):
    outside = folder.parent / "elsewhere.yml"
    outside.write_text(CONFIG)
    terminal = Terminal(folder, *LAUNCH[:-1], str(outside))
    shown = terminal.end()
    assert terminal.code == 1 and "Apply" not in shown and len(shown.splitlines()) <= 6
    (folder / "run.yml").unlink()
    (folder / "run.yml").symlink_to(outside)
    terminal = Terminal(folder)
    assert "Apply" not in terminal.end()
    assert terminal.code == 1 and outside.read_text() == CONFIG


@pytest.mark.slow
def test_a_file_that_was_changed_meanwhile_is_left_alone(folder: Path):
    terminal = Terminal(folder)
    terminal.asks()
    (folder / "run.yml").write_text(CONFIG + "# by somebody else\n")
    shown = terminal.last("y")
    assert "nothing was written: run.yml: has changed since it was read" in shown and "started" not in shown
    assert terminal.code == 1 and text(folder) == CONFIG + "# by somebody else\n"


@pytest.mark.slow
def test_what_is_started_has_standard_output_for_itself(folder: Path):
    terminal = Terminal(folder, streams=">out")
    assert terminal.asks().endswith(ASKED)
    terminal.last("y")
    assert (folder / "out").read_text() == "started train run.yml\n" and terminal.code == 7


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["RuntimeError", "SystemExit"])
def test_trouble_of_our_own_asks_nothing_and_the_verdict_stands(folder: Path, fault: str):
    faulty = (
        "import runpy, sys; from advisor.cli.question import asking\n"
        f"def fail(*_): raise {fault}('on purpose')\n"
        "asking._answered = fail\n"
        "sys.argv = ['advisor', *sys.argv[1:]]; runpy.run_module('advisor', run_name='__main__')"
    )
    terminal = Terminal(folder, "-c", faulty, *LAUNCH[2:])
    shown = terminal.end()
    assert f"not asked: {fault}: on purpose" in shown and "to run anyway" in shown
    assert "Traceback" not in shown and "started" not in shown
    assert terminal.code == 1 and text(folder) == CONFIG


@pytest.mark.slow
def test_advise_offers_the_same_and_starts_nothing(folder: Path):
    terminal = Terminal(folder, "-c", ADVISE, "run.yml", "--gpus", "1x rtx-4090")
    asked = terminal.asks()
    assert asked.splitlines()[-1] == ASKED.replace("Apply and start", "Apply")
    shown = terminal.last("y")
    assert "wrote run.yml" in shown and "advisor: fits " in shown
    assert terminal.code == 0 and text(folder) != CONFIG


@pytest.mark.slow
def test_advise_with_a_no_exits_as_check_does(folder: Path):
    terminal = Terminal(folder, "-c", ADVISE, "run.yml", "--gpus", "1x rtx-4090")
    terminal.asks()
    terminal.last("n")
    assert terminal.code == 1 and text(folder) == CONFIG


class TestOwnFiles:
    def test_what_lies_below_the_repository_of_the_working_directory_is_own(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (folder / "inner").mkdir()
        monkeypatch.chdir(folder / "inner")
        assert own_files.are_own([str(folder / "run.yml"), "new.json"])
        assert not own_files.are_own([str(folder / "run.yml"), str(folder.parent / "other.yml")])

    def test_without_a_repository_it_is_what_lies_below_the_working_directory(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (folder / ".git").rmdir()
        (folder / "inner").mkdir()
        monkeypatch.chdir(folder / "inner")
        assert not own_files.are_own(["../run.yml"]) and own_files.are_own(["run.yml"])

    def test_what_is_read_only_is_not_offered(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(folder)
        closed = str(folder / "run.yml")
        monkeypatch.setattr(os, "access", lambda path, _mode: path != closed)  # type: ignore[reportUnknownLambdaType]
        assert not own_files.are_own(["run.yml"]) and own_files.are_own(["other.yml"])
        closed = str(folder)
        assert not own_files.are_own(["run.yml"])
