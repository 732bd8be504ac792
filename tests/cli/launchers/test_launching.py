"""``advisor launch`` as a process: it checks, and then is the command."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor import estimate
from advisor.cli import launch as launching
from advisor.cli.question import blocked
from advisor.engine import check, plan
from advisor.session import RunOptions

SMALL = "base_model: meta-llama/Llama-3.2-1B\nadapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
LARGE = "base_model: meta-llama/Llama-3.1-70B\n"
REST = "sequence_len: 1024\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\ngradient_checkpointing: true\n"
FAULTY = """\
from advisor import Example, Rule

def finds(run):
    raise {fault}

rule = Rule(id="faulty", stage="lint", title="Fail", finds=finds, why="", cost="", source="", level="note", proof="read",
            examples=(Example(before="base_model: a/b"),))
"""
STUB = 'import sys\nprint("launched", sys.argv[1:])\nsys.exit(7)\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "axolotl" / "cli"
    package.mkdir(parents=True)
    (tmp_path / "axolotl" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "train.py").write_text(STUB)
    (tmp_path / "small.yml").write_text(SMALL + REST)
    (tmp_path / "large.yml").write_text(LARGE + REST)
    return tmp_path


def launch(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "advisor", "launch", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def train(config: str, *more: str) -> list[str]:
    return ["--", sys.executable, "-m", "axolotl.cli.train", config, *more]


def test_a_run_that_fits_is_launched_and_its_exit_code_is_the_commands(folder: Path):
    done = launch(folder, "--gpus", "1x rtx-4090", *train("small.yml", "--learning_rate=1e-4"))
    assert (done.returncode, done.stdout) == (7, "launched ['small.yml', '--learning_rate=1e-4']\n")
    assert re.search(
        r"^advisor: fits \d+\.\d of 23\.1 GiB, for rows of up to 1024 tokens; \S+ s a step$", done.stderr, re.M
    )


def test_a_run_near_the_limit_is_launched_and_the_command_that_settles_it_is_named(folder: Path):
    found = estimate(folder / "small.yml", gpus="1x rtx-4090")
    free = (found.needed.low + found.needed.high) // 2 + found.outside_torch
    done = launch(folder, "--gpus", f"1x rtx-4090 free={free // 2**20}MiB", *train("small.yml", "--learning_rate=1e-4"))
    assert done.returncode == 7 and "near the limit" in done.stderr
    assert "advisor: does it disagree? `advisor verify small.yml`" in done.stderr


def test_a_run_that_does_not_fit_is_blocked_and_the_ways_around_are_named(folder: Path):
    done = launch(folder, "--gpus", "1x rtx-4090", *train("large.yml"))
    assert (done.returncode, done.stdout) == (1, "")
    for part in ("advisor: does not start: ", "Does not fit: ", "--no-block", "file-ignore[does-not-fit]"):
        assert part in done.stderr
    assert len(done.stderr.splitlines()) <= 5 and all(line.startswith("advisor: ") for line in done.stderr.splitlines())


@pytest.mark.slow
def test_no_block_says_it_and_launches(folder: Path):
    done = launch(folder, "--gpus", "1x rtx-4090", "--no-block", *train("large.yml"))
    assert done.returncode == 7
    assert "does-not-fit" in done.stderr


@pytest.mark.slow
def test_an_ignored_finding_blocks_nothing(folder: Path):
    (folder / "large.yml").write_text("# advisor: file-ignore[does-not-fit] measured\n" + LARGE + REST)
    done = launch(folder, "--gpus", "1x rtx-4090", *train("large.yml"))
    assert done.returncode == 7
    assert "advisor: does not fit: " in done.stderr


@pytest.mark.slow
def test_overrides_are_checked_in_place_of_the_yaml(folder: Path):
    done = launch(folder, "--gpus", "1x rtx-4090", *train("small.yml", "--base_model", "meta-llama/Llama-3.1-70B"))
    assert done.returncode == 1
    done = launch(folder, "--gpus", "1x rtx-4090", *train("large.yml", "--base_model=meta-llama/Llama-3.2-1B"))
    assert done.returncode == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unknown.yml", "base_model: nobody/knows-this\n"),
        ("broken.yml", "base_model: [\n"),
        ("wrong.yml", "base_model: meta-llama/Llama-3.2-1B\nsequence_len: many\n"),
        ("empty.yml", ""),
        ("missing.yml", None),
    ],
)
def test_what_cannot_be_checked_is_one_line_and_launches(folder: Path, name: str, text: str | None):
    if text is not None:
        (folder / name).write_text(text)
    done = launch(folder, "--gpus", "1x rtx-4090", *train(name))
    assert done.returncode == 7
    assert "Traceback" not in done.stderr
    assert "advisor: no" in done.stderr


def test_an_unknown_model_is_two_short_lines_and_launches(folder: Path):
    (folder / "unknown.yml").write_text("base_model: nobody/knows-this\n" + REST)
    done = launch(folder, "--gpus", "1x rtx-4090", *train("unknown.yml"))
    verdict, hint = [line for line in done.stderr.splitlines() if line.startswith("advisor: ")]
    assert done.returncode == 7 and verdict == "advisor: no verdict: unknown model `nobody/knows-this`"
    assert "`# advisor: model=" in hint and "--model-config" in hint and len(hint) < 200
    assert "unknown-model" not in done.stderr


def test_without_gpus_it_says_where_to_state_them(folder: Path):
    done = launch(folder, *train("small.yml", "--learning_rate=1e-4"))
    assert done.returncode == 7 and "no verdict: no GPUs were found" in done.stderr
    assert "`# advisor: gpus=8x a100-80gb`" in done.stderr


UNUSABLE = {
    "fail-on of the environment": ("", {"ADVISOR_FAIL_ON": "zzz"}),
    "rules of the environment": ("", {"ADVISOR_RULES": "{folder}/nowhere"}),
    "rules of the environment by a relative path": ("", {"ADVISOR_RULES": "rules"}),
    "rules that fail": ("", {"ADVISOR_RULES": "{folder}/rules"}),
    "no TOML": ("gpus = [", {}),
    "unknown key": ("gpu = '1x t4'", {}),
    "wrong type": ("fail-on = 12", {}),
    "unknown rule": ("select = ['no-such-rule']", {}),
    "unknown rule to ignore": ("ignore = ['no-such-rule']", {}),
    "unknown rule for some files": ("[per-file-ignores]\n'*' = ['no-such-rule']", {}),
    "unknown flowchart": ("flowchart = 'no-such-chart'", {}),
    "unknown step": ("[flowcharts]\nours = ['no-such-step']", {}),
    "unknown setting of the stack": ("[stack]\ntorhc = '2.9.0'", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "environment"), UNUSABLE.values(), ids=UNUSABLE)
def test_settings_that_cannot_be_used_are_left_out_and_the_run_is_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, settings: str, environment: dict[str, str]
):
    (folder / "advisor.toml").write_text(settings)
    (folder / "rules").mkdir()
    (folder / "rules" / "faulty.py").write_text("raise RuntimeError('on purpose')\n")
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(folder=folder))
    done = launch(folder, "--gpus", "1x rtx-4090", *train("large.yml"))
    assert done.returncode == 1 and "file-ignore[does-not-fit]" in done.stderr, done.stderr
    assert done.stderr.count("left out of the settings: ") == 1 and "not checked" not in done.stderr
    assert done.stderr.startswith("advisor: left out of the settings: ")


def test_what_can_be_used_of_the_settings_counts(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADVISOR_FAIL_ON", "zzz")
    (folder / "advisor.toml").write_text(
        'gpus = "1x rtx-4090"\nselect = ["no-such"]\nignore = ["does-not-fit"]\nfoo = 1\n'
    )
    done = launch(folder, *train("large.yml"))
    assert done.returncode == 7 and "does not fit" in done.stderr, done.stderr
    assert done.stderr.count("left out of the settings: ") == 3


def test_an_option_that_cannot_be_used_never_blocks(folder: Path):
    done = launch(folder, "--gpus", "1x rtx-4090", "--images", "many", *train("large.yml"))
    assert done.returncode == 7
    assert "not checked: `--images many`" in done.stderr


def test_an_unknown_gpu_never_blocks(folder: Path):
    done = launch(folder, "--gpus", "1x abacus", *train("large.yml"))
    assert done.returncode == 7
    assert "unknown GPU" in done.stderr


@pytest.mark.slow
def test_other_ranks_say_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("ADVISOR_FAIL_ON", "zzz")
    done = launch(folder, "--gpus", "8x rtx-4090", *train("large.yml"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    for others in (launch(folder, "--gpus", "8x nothing", *train("large.yml")), launch(folder, *train("missing.yml"))):
        assert (others.returncode, others.stderr) == (7, "")


@pytest.mark.parametrize(
    ("config", "rank", "asked"),
    [
        ("small.yml", "0", {"time_of", "basis_of", "explain"}),
        ("large.yml", "0", {"plan_fit", "time_of", "basis_of", "answered"}),
        ("small.yml", "3", set()),
        ("large.yml", "3", set()),
    ],
)
def test_ranks_after_the_first_find_out_no_more_than_whether_to_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, config: str, rank: str, asked: set[str]
):
    called: set[str] = set()
    of_check = ((plan, "plan_fit"), (check, "time_of"), (check, "basis_of"))
    for module, name in (*of_check, (launching, "explain"), (blocked, "answered")):
        true = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, name=name, true=true, **k: called.add(name) or true(*a, **k))
    started: list[object] = []
    monkeypatch.setattr(launching, "become", lambda tokens: started.append(tokens) or 0)
    monkeypatch.setenv("RANK", rank)
    monkeypatch.chdir(folder)
    code = launching.launch_command(["axolotl", "train", config], RunOptions(gpus="1x rtx-4090"), no_block=False)
    assert (code, bool(started)) == ((0, True) if config == "small.yml" else (1, False))
    assert called == asked


@pytest.mark.slow
def test_ranks_at_once_are_as_many_starts_and_one_report(folder: Path):
    ranks = range(16)
    command = [sys.executable, "-m", "advisor", "launch", "--gpus", "8x rtx-4090", *train("small.yml")]
    environments = [
        {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank % 8), "WORLD_SIZE": "16"} for rank in ranks
    ]
    started = [
        subprocess.Popen(command, cwd=folder, env=each, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for each in environments
    ]
    said = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [7] * len(ranks)
    assert all(out == "launched ['small.yml']\n" for out, _ in said)
    assert [bool(err) for _, err in said] == [rank == 0 for rank in ranks]


def test_what_trains_nothing_is_launched(folder: Path):
    done = launch(folder, "--", sys.executable, "-c", "print('hello')")
    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_a_command_that_is_not_there_is_told_as_a_shell_tells_it(folder: Path):
    done = launch(folder, "--", "no-such-launcher", "train")
    assert done.returncode == 127
    assert "no-such-launcher: command not found" in done.stderr


def test_a_signal_kills_the_command_itself(folder: Path):
    done = launch(folder, "--", sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert done.returncode == -signal.SIGTERM


def test_the_command_has_the_environment_that_it_was_given(folder: Path):
    tell = "import os, sys; print(os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')); sys.exit(0)"
    (folder / "axolotl" / "cli" / "train.py").write_text(tell)
    (folder / "accelerate").write_text(f'#!/bin/sh\nshift 3\nexec {sys.executable} "$@"\n')
    (folder / "accelerate").chmod(0o755)
    given = ["--gpus", "1x rtx-4090", "--", "./accelerate", "launch", "--gpu_ids", "0"]
    done = launch(folder, *given, "-m", "axolotl.cli.train", "small.yml")
    assert (done.returncode, done.stdout) == (0, "unset\n")


@pytest.mark.slow
def test_what_is_not_to_be_blocked_is_told_to_plugins_further_in(folder: Path):
    (folder / "axolotl" / "cli" / "train.py").write_text("import os; print(os.environ.get('ADVISOR_NO_BLOCK'))")
    assert launch(folder, "--gpus", "1x rtx-4090", "--no-block", *train("large.yml")).stdout == "1\n"
    assert launch(folder, "--gpus", "1x rtx-4090", *train("small.yml")).stdout == "None\n"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["RuntimeError('on purpose')", "SystemExit('on purpose')"])
def test_a_fault_of_the_advisor_is_one_line_and_launches(folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str):
    faulty = FAULTY.format(fault=fault)
    (folder / "rules").mkdir()
    (folder / "rules" / "faulty.py").write_text(faulty)
    monkeypatch.setenv("ADVISOR_RULES", str(folder / "rules"))
    done = launch(folder, "--gpus", "1x rtx-4090", *train("large.yml"))
    assert done.returncode == 7
    assert "on purpose" in done.stderr and "not checked" in done.stderr
    assert "Traceback" not in done.stderr
