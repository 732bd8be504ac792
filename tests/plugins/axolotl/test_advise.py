"""``axolotl advise``: the command's own words, axolotl's overrides, and the codes of ``advisor check``."""

import json
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
import yaml
from advisor.plugins.axolotl.advise import advise
from click.testing import CliRunner, Result

from advisor.cli.main import main

from .conftest import CONFIG

GPU = ("--gpus", "1x rtx-3060")


def run(*arguments: str, command: click.Command = advise) -> Result:
    return CliRunner().invoke(command, list(arguments))


def test_it_exits_as_check_does(folder: Path):
    assert run("run.yml", *GPU).exit_code == 0
    assert run("run.yml", *GPU, "--micro-batch-size", "64").exit_code == 1
    assert run("run.yml", *GPU, "--fail-on", "note", "--sequence-len=64").exit_code == 1
    assert run("nothing.yml", *GPU).exit_code == 2
    assert run("run.yml", "--gpus", "1x nothing").exit_code == 2
    assert run("--micro-batch-size=2").exit_code == 2
    (folder / "other.yml").write_text("a: 1\n")
    assert run("other.yml", *GPU).exit_code == 2


def test_it_ends_with_the_whole_command_that_writes_the_edits(folder: Path):
    blocked = CONFIG.replace("micro_batch_size: 1", "micro_batch_size: 64")
    assert blocked != CONFIG
    (folder / "run.yml").write_text(blocked)
    said = run("run.yml", *GPU, "-q").output
    assert "--fix" in said.splitlines()[1]
    last = said[said.index("To write the edits:") :].replace("\\\n", "")
    assert main_says_it_fits(last.split("\n", 1)[1].strip().removeprefix("advisor "))
    assert "To write" not in run("run.yml", *GPU, "--output-format", "json").output
    assert "To write" not in run("run.yml", *GPU, "--sequence-len=1024").output  # a key that is in no file


def main_says_it_fits(words: str) -> bool:
    result = CliRunner().invoke(main, shlex.split(words))
    return result.exit_code == 0 and run("run.yml", *GPU).output.startswith(("Fits", "Near the limit"))


def test_it_is_as_quiet_or_verbose_as_check(folder: Path):
    (folder / "run.yml").write_text(CONFIG)
    quiet, normal, verbose = (run("run.yml", *GPU, *words).output for words in (("-q",), (), ("-v",)))
    assert len(quiet) < len(normal) < len(verbose)
    assert run("run.yml", *GPU, "-q", "-v").exit_code == 2


def test_settings_that_cannot_be_used_are_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADVISOR_FAIL_ON", "zzz")
    (folder / "advisor.toml").write_text("gpus = [\n")
    assert run("run.yml", *GPU).exit_code == 0
    result = run("run.yml", *GPU, "--micro-batch-size", "64")
    assert result.exit_code == 1 and result.stderr.count("left out of the settings: ") == 2


def test_what_cannot_be_used_is_one_clear_error():
    result = run("run.yml", *GPU, "--micro-batch-size=many")
    assert result.exit_code == 1
    assert result.output.startswith("Does not start: `micro_batch_size` is `many`")
    assert "Traceback" not in result.output


def test_overrides_change_the_run_as_edits_of_the_file_would(folder: Path):
    overrides = {"micro_batch_size": 4, "sample_packing": False, "learning_rate": 1e-05, "sequence_len": 1024}
    words = ("--micro-batch-size", "4", "--no-sample-packing", "--learning_rate=1e-05", "--sequence-len", "1024")
    (folder / "run.yml").write_text(CONFIG)
    changed = yaml.safe_dump({**yaml.safe_load(CONFIG), **overrides})
    said = reported(run("run.yml", *words, *GPU, "--output-format", "json"))
    (folder / "run.yml").write_text(changed)
    assert said == reported(run("check", "run.yml", *GPU, "--output-format", "json", command=main))


def reported(result: Result) -> tuple[object, ...]:
    """What is said of the run, but for places."""
    (said,) = json.loads(result.output)["runs"]
    messages = [(finding["rule"], finding["message"]) for finding in said["findings"]]
    return said["verdict"], said["memory"], messages


def test_nested_keys_are_dotted(folder: Path):
    (folder / "run.yml").write_text(CONFIG + "deepspeed: {zero_optimization: {stage: 2}}\n")
    result = run("run.yml", "--gpus", "8x a100", "--deepspeed.zero_optimization.stage", "7")
    assert "7" in result.output
    assert result.exit_code != 0


def test_a_report_goes_to_a_file(folder: Path):
    run("run.yml", *GPU, "--output-format", "json=report.json")
    assert '"version"' in (folder / "report.json").read_text()


def test_axolotl_finds_it_by_its_entry_point():
    (found,) = {point.value for point in entry_points(group="axolotl.cli_commands") if point.name == "advise"}
    assert found == "advisor.plugins.axolotl.advise:advise"


def test_it_loads_no_torch():
    command = (
        "import sys; from click.testing import CliRunner\n"
        "from advisor.plugins.axolotl.advise import advise\n"
        "result = CliRunner().invoke(advise, ['run.yml', '--gpus', '1x h200'])\n"
        "print(result.exit_code, *sorted({'torch', 'transformers', 'axolotl', 'pydantic'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]


def test_it_explains_itself():
    result = run("--help")
    assert "--gpus" in result.output
    assert "CONFIG [--KEY VALUE]" in result.output


def test_the_gpus_of_the_plugins_own_key_count(folder: Path):
    (folder / "run.yml").write_text(CONFIG + "advisor:\n  gpus: 1x rtx-3060\n")
    for command in (("run.yml",), ("check", "run.yml")):
        shown = run(*command, "--output-format", "json", command=advise if len(command) == 1 else main)
        assert json.loads(shown.output)["runs"][0]["hardware"] == "1x RTX 3060 12GB"
    stated = run("check", "run.yml", "--gpus", "1x h200", "--output-format", "json", command=main)
    assert json.loads(stated.output)["runs"][0]["hardware"] == "1x H200"
    (folder / "run.yml").write_text(CONFIG + "advisor:\n  gpus: 1x nothing\n")
    wrong = run("check", "run.yml", command=main)
    assert wrong.exit_code == 2 and "run.yml:20" in wrong.output


def test_what_axolotl_train_takes_itself_is_no_key(folder: Path):
    plain = reported(run("run.yml", *GPU, "--output-format", "json"))
    words = ("--debug=False", "--debug-text-only=False", "--debug-num-examples=0", "--shard=False", "--no-debug")
    assert reported(run("run.yml", *words, *GPU, "--output-format", "json")) == plain
