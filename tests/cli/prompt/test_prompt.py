"""``advisor check -p``, typed at a pseudo-terminal."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.test_tight import TIGHT

from .terminal import LLAMA, Terminal, proposed

ROOMY = ("--gpus", "8x a100-80gb", "--ignore", "fused-kernels")
SMALL = ("--gpus", "1x rtx-4090 host=32GiB")
TYPO = '{"zero_optimization": {"stage": 2, "overlap_com": true}, "train_micro_batch_size_per_gpu": "auto"}\n'


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_edit_is_shown_with_its_title_memory_cost_and_diff(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    shown = terminal.asks()
    assert "full.yaml: does not fit 8x A100-80GB" in shown
    assert re.search(r"^plan: 2 steps, then it fits \(.* GiB\)$", shown, re.MULTILINE)
    assert "1. smaller-micro-batch: micro batch 4 -> 1, accumulation 2 -> 8" in shown
    assert re.search(r"^   \d+\.\d -> \d+\.\d GiB per GPU, \d\S* -> \d\S* s a step: does not fit$", shown, re.MULTILINE)
    for line in ("   same training", "   -micro_batch_size: 4  # rows", "   +micro_batch_size: 1  # rows"):
        assert line in shown.splitlines()
    assert "   cost: " in shown and terminal.letters == "y,n,a,d,e,q,?"
    assert max(map(len, shown.splitlines())) <= 80
    terminal.last("q")


def test_y_goes_on_to_the_next_step_and_the_end_writes_all_of_them(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    assert proposed(terminal.asks()) == "smaller-micro-batch"
    shown = terminal.answer("y")
    assert "2. zero-2" in shown and "new plan" not in shown
    assert (folder / "full.yaml").read_text() == LLAMA
    shown = terminal.last("y")
    assert "wrote full.yaml" in shown and "Fixed full.yaml: 2 edits" in shown
    assert terminal.code == 0
    text = (folder / "full.yaml").read_text()
    for part in ("# a comment that stays", "micro_batch_size: 1  # rows", "deepspeed: full.zero-2.json"):
        assert part in text


def test_n_drops_the_step_and_plans_again(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    shown = terminal.answer("n")
    assert "new plan: 2 steps, then it fits" in shown and proposed(shown) == "zero-3"
    shown = terminal.answer("y")
    assert proposed(shown) == "gradient-checkpointing"
    shown = terminal.last("y\nq")
    assert terminal.code == 0 and "smaller-micro-batch" not in shown
    text = (folder / "full.yaml").read_text()
    assert "micro_batch_size: 4  # rows" in text and "deepspeed: full.zero-3.json" in text
    assert json.loads((folder / "full.zero-3.json").read_text())["zero_optimization"]["stage"] == 3


@pytest.mark.slow
def test_no_to_everything_ends_by_itself_and_writes_nothing(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    refused = [proposed(terminal.asks())]
    for _ in range(40):
        terminal.process.sendline("n")
        if terminal.process.expect([r"\]\? ", r"full\.yaml: does not fit\. "]) == 1:
            break
        refused.append(proposed(terminal.process.before))
    terminal.end()
    assert len(refused) == len(set(refused)) > 3
    assert terminal.code == 1
    assert names(folder) == ["full.yaml"] and (folder / "full.yaml").read_text() == LLAMA


@pytest.mark.slow
def test_d_leaves_the_rest_of_the_file_and_keeps_what_was_accepted(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    terminal.answer("y")
    shown = terminal.last("d")
    assert terminal.code == 1 and "\nDoes not fit: needs " in shown
    assert "micro_batch_size: 1" in (folder / "full.yaml").read_text()
    assert names(folder) == ["full.yaml"]


@pytest.mark.parametrize("end", ["q\n", "\x04"])
def test_q_and_the_end_of_the_input_keep_what_was_accepted(folder: Path, end: str):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    terminal.answer("y")
    terminal.process.send(end)
    terminal.end()
    assert terminal.code == 1 and "micro_batch_size: 1" in (folder / "full.yaml").read_text()


def test_a_takes_the_safe_steps_and_asks_about_one_that_changes_what_is_trained(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *SMALL)
    terminal.asks()
    shown = terminal.answer("a")
    assert shown.count("   applied (`a`)\n") == 3
    assert proposed(shown) == "lora" and terminal.letters == "y,n,d,e,q,?"
    assert "   unsafe: changes what is trained; `a` never takes it" in shown.splitlines()
    shown = terminal.answer("a")
    assert "`a` takes only what --fix would write" in shown and "lora" not in shown
    shown = terminal.answer("n")
    assert proposed(shown) == "qlora" and "unsafe:" in shown
    terminal.last("q")
    text = (folder / "full.yaml").read_text()
    assert "gradient_checkpointing: true" in text and "adapter" not in text
    assert terminal.code == 1


@pytest.mark.slow
def test_a_gain_is_asked_about_last_and_by_itself(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    terminal.answer("n")
    shown = terminal.answer("a")
    assert proposed(shown) == "large-vocabulary-logits" and terminal.letters == "y,n,d,e,q,?"
    assert "   same training; a matter of choice, which `a` leaves alone" in shown.splitlines()
    terminal.last("n")
    assert terminal.code == 0 and "liger" not in (folder / "full.yaml").read_text()


@pytest.mark.slow
def test_y_takes_an_unsafe_step(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *SMALL)
    terminal.asks()
    terminal.answer("a")
    terminal.last("y")
    assert terminal.code == 0 and "adapter: lora" in (folder / "full.yaml").read_text()


@pytest.mark.slow
def test_a_question_mark_explains_the_letters_and_the_edit_and_asks_again(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    shown = terminal.answer("?")
    for letter in "ynadeq?":
        assert re.search(rf"^{re.escape(letter)} - ", shown, re.MULTILINE)
    for part in ("why: ", "cost: ", "source: https://"):
        assert part in shown
    assert "one letter is expected" in terminal.answer("yes")
    assert terminal.answer("").count("Apply") == 1
    assert proposed(terminal.answer("Y")) == "zero-2"
    terminal.last("q")


def test_e_opens_the_changed_lines_and_asks_about_what_comes_back(folder: Path, editor: Callable[[str], str]):
    seen = folder / "seen"
    command = editor(f'cp "$1" {seen}; sed -i \'s/size: 1/size: 2/; s/steps: 8/steps: 4/\' "$1"')
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY, EDITOR=command)
    first = terminal.asks()
    shown = terminal.answer("e")
    ours = [line for line in seen.read_text().splitlines() if not line.startswith("#:")]
    assert ours == ["micro_batch_size: 1  # rows", "gradient_accumulation_steps: 8"]
    assert "   +micro_batch_size: 2  # rows" in shown and "your own value" in shown
    needed = [re.search(r"-> (\d+\.\d) GiB", text) for text in (first, shown)]
    assert needed[0] and needed[1] and float(needed[1][1]) > float(needed[0][1])
    assert terminal.letters == "y,n,d,e,q,?"
    shown = terminal.answer("y")
    assert "new plan" in shown and proposed(shown) != "smaller-micro-batch"
    terminal.last("q")
    assert "micro_batch_size: 2  # rows\ngradient_accumulation_steps: 4\n" in (folder / "full.yaml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("s/size: 1/size: 2/; s/steps: 8/steps: 4/", "your own value: the same training, global batch 64 as before"),
        ("s/steps: 8/steps: 12/", "your own value: it changes what is trained, global batch 64 -> 96"),
        ("s/size: 1/size: 2/; s/ # rows/\\nadapter: lora/", "the rest may change it too"),
    ],
)
def test_an_own_value_says_what_it_does_to_the_global_batch(
    folder: Path, editor: Callable[[str], str], line: str, said: str
):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY, EDITOR=editor(f"sed -i '{line}' \"$1\""))
    terminal.asks()
    assert said in " ".join(terminal.answer("e").split())
    terminal.last("q")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("sed -i 's/size: 1/size: [1/' \"$1\"", "not YAML"),
        ("sed -i 's/size: 1/size: two/' \"$1\"", "must be an integer"),
        ("sed -i 's/size: 1/size: 4/; s/steps: 8/steps: 2/' \"$1\"", "your lines change nothing"),
        ('sed -i /----/d "$1"', "are not all there"),
        ("true", "nothing was changed"),
        ("exit 3", "ended with 3"),
    ],
)
def test_what_comes_back_wrong_is_said_and_asked_again(
    folder: Path, editor: Callable[[str], str], line: str, complaint: str
):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY, EDITOR=editor(line))
    terminal.asks()
    shown = terminal.answer("e")
    assert complaint in " ".join(shown.split()) and "the edit is as it was" in shown and "Traceback" not in shown
    assert proposed(terminal.answer("y")) == "zero-2"
    terminal.last("q")
    assert "micro_batch_size: 1" in (folder / "full.yaml").read_text()


@pytest.mark.slow
def test_an_editor_that_is_not_there_is_said(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY, EDITOR="no-such-editor")
    terminal.asks()
    assert "the editor `no-such-editor` cannot be run" in terminal.answer("e")
    terminal.last("q")


@pytest.mark.slow
def test_an_own_value_that_is_an_error_is_shown_with_it(folder: Path, editor: Callable[[str], str]):
    terminal = Terminal(
        folder, "-p", "full.yaml", *ROOMY, EDITOR=editor("sed -i 's/^deepspeed:.*/adapter: lora/' \"$1\"")
    )
    terminal.asks()
    assert proposed(terminal.answer("n")) == "zero-3"
    shown = terminal.answer("e")
    assert "error[lora-without-rank-or-targets]" in shown and "   +adapter: lora" in shown
    terminal.last("n\nq")
    assert names(folder) == ["full.yaml"]


@pytest.mark.slow
def test_e_can_change_the_json_that_a_step_writes(folder: Path, editor: Callable[[str], str]):
    command = editor("sed -i 's/50000000/20000000/' \"$1\"")
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY, EDITOR=command)
    terminal.asks()
    terminal.answer("y")
    terminal.answer("e")
    terminal.last("y\nq")
    written = json.loads((folder / "full.zero-2.json").read_text())
    assert written["zero_optimization"]["reduce_bucket_size"] == 20_000_000
    assert "deepspeed: full.zero-2.json" in (folder / "full.yaml").read_text()


@pytest.mark.slow
def test_the_edits_of_findings_come_first_and_their_own_value_can_be_given(folder: Path, editor: Callable[[str], str]):
    (folder / "ds.json").write_text(TYPO)
    (folder / "full.yaml").write_text(LLAMA + "deepspeed: ds.json\n")
    command = editor("sed -i 's/overlap_comm/round_robin_gradients/' \"$1\"")
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY, EDITOR=command)
    shown = terminal.asks()
    while proposed(shown) != "deepspeed-unknown-key":
        shown = terminal.answer("n")
    assert "--> ds.json:1:36" in shown
    shown = terminal.answer("e")
    assert re.search(r"^   \+.*round_robin_gradients", shown, re.MULTILINE)
    terminal.answer("y")
    terminal.last("q")
    assert json.loads((folder / "ds.json").read_text())["zero_optimization"] == {
        "stage": 2,
        "round_robin_gradients": True,
    }


@pytest.mark.slow
def test_a_json_alone_is_asked_about(folder: Path):
    (folder / "ds.json").write_text(TYPO)
    terminal = Terminal(folder, "-p", "ds.json")
    assert proposed(terminal.asks()) == "deepspeed-unknown-key"
    assert "no findings" in terminal.last("y") and terminal.code == 0
    assert "overlap_comm" in (folder / "ds.json").read_text()


@pytest.mark.slow
def test_answers_for_one_file_do_not_count_for_the_next(folder: Path):
    (folder / "other.yaml").write_text(LLAMA)
    terminal = Terminal(folder, "-p", "full.yaml", "other.yaml", *ROOMY)
    assert "full.yaml: does not fit" in terminal.asks()
    assert proposed(terminal.answer("n")) == "zero-3"
    shown = terminal.answer("d")
    assert "other.yaml: does not fit" in shown and "new plan" not in shown
    assert proposed(shown) == "smaller-micro-batch"
    shown = terminal.last("a")
    assert terminal.code == 1 and "wrote other.yaml" in shown
    assert (folder / "full.yaml").read_text() == LLAMA
    assert "deepspeed: other.zero-2.json" in (folder / "other.yaml").read_text()


@pytest.mark.slow
def test_q_leaves_the_files_that_follow(folder: Path):
    (folder / "other.yaml").write_text(LLAMA)
    terminal = Terminal(folder, "-p", "full.yaml", "other.yaml", *ROOMY)
    terminal.asks()
    terminal.answer("y")
    shown = terminal.last("q")
    assert "2 files" in shown and "other.yaml" in shown
    assert (folder / "other.yaml").read_text() == LLAMA
    assert "micro_batch_size: 1" in (folder / "full.yaml").read_text()


@pytest.mark.parametrize("accepted", [0, 1])
def test_ctrl_c_leaves_every_file_as_it_was(folder: Path, accepted: int):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    for _ in range(accepted):
        terminal.answer("y")
    terminal.process.sendintr()
    shown = terminal.end()
    assert terminal.code == 130 and "interrupted: nothing was written" in shown and "Traceback" not in shown
    assert names(folder) == ["full.yaml"] and (folder / "full.yaml").read_text() == LLAMA


@pytest.mark.slow
def test_ctrl_c_in_the_editor_is_the_editors(folder: Path, editor: Callable[[str], str]):
    command = editor("trap 'echo caught; exit 0' INT; echo ready; while :; do sleep 0.05; done")
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY, EDITOR=command)
    terminal.asks()
    terminal.process.sendline("e")
    terminal.process.expect("ready")
    terminal.process.sendintr()
    assert "caught" in terminal.asks()
    terminal.last("q")
    assert terminal.code == 1


@pytest.mark.slow
def test_a_termination_leaves_every_file_as_it_was(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    terminal.answer("y")
    terminal.process.kill(signal.SIGTERM)
    terminal.end()
    assert terminal.code == -signal.SIGTERM
    assert names(folder) == ["full.yaml"] and (folder / "full.yaml").read_text() == LLAMA


@pytest.mark.slow
def test_a_file_that_changed_meanwhile_is_not_overwritten(folder: Path):
    terminal = Terminal(folder, "-p", "full.yaml", *ROOMY)
    terminal.asks()
    (folder / "full.yaml").write_text(LLAMA + "seed: 7\n")
    terminal.answer("y")
    shown = terminal.last("y")
    assert terminal.code == 2 and "has changed since it was read" in shown
    assert (folder / "full.yaml").read_text() == LLAMA + "seed: 7\n"


def test_where_nothing_is_to_be_asked_the_report_is_all(folder: Path):
    (folder / "full.yaml").write_text(LLAMA + "adapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_target_linear: true\n")
    terminal = Terminal(folder, "-p", "full.yaml", "--gpus", "1x b200", "--select", "does-not-fit")
    shown = terminal.end()
    assert terminal.code == 0 and "Apply" not in shown and "on 1x B200." in shown


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_told_and_the_others_are_asked_about(folder: Path):
    (folder / "bad.yaml").write_text("base_model: [\n")
    terminal = Terminal(folder, "-p", ".", *ROOMY)
    assert "bad.yaml:2:1" in terminal.asks()
    terminal.last("a")
    assert terminal.code == 2 and "micro_batch_size: 1" in (folder / "full.yaml").read_text()


@pytest.mark.slow
def test_colours_only_add_to_what_is_said(folder: Path):
    plain, colored = (Terminal(folder, "-p", "full.yaml", *ROOMY, color=color) for color in (False, True))
    assert plain.asks() == colored.asks()
    assert "\x1b[" not in plain.raw and "\x1b[32m+micro_batch_size: 1" in colored.raw
    for terminal in (plain, colored):
        terminal.last("q")


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", [("--fix",), ("--diff",), ("--unsafe-fixes",), ("--fix", "--output-dir", "out"), ("-",)]
)
def test_what_contradicts_a_prompt_is_one_clear_error(folder: Path, option: tuple[str, ...]):
    terminal = Terminal(folder, "-p", "full.yaml", *option)
    shown = terminal.end()
    assert terminal.code == 2 and shown.startswith("error: -p ") and "= help: " in shown
    assert names(folder) == ["full.yaml"]


def test_without_a_terminal_it_asks_nothing_and_names_fix(folder: Path):
    command = [sys.executable, "-m", "advisor", "check", "-p", "full.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, input="y\ny\n", check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: -p needs an interactive terminal") and "--fix" in done.stderr
    assert (folder / "full.yaml").read_text() == LLAMA


@pytest.mark.slow
def test_a_tight_run_is_asked_about_the_steps_that_make_it_fit(folder: Path):
    (folder / "tight.yaml").write_text(TIGHT)
    terminal = Terminal(folder, "-p", "tight.yaml", "--gpus", "1x rtx-4090", "--ignore", "large-vocabulary-logits")
    shown = terminal.asks()
    assert "tight.yaml: near the limit on 1x RTX 4090" in shown and "plan: 1 step, then it fits" in shown
    assert proposed(shown) == "fused-loss"
    assert "fits" in terminal.last("y") and terminal.code == 0
