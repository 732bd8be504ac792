"""What a config can make the advisor do: nothing on the network, and no code of its own."""

import socket
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from advisor.cli.main import main

CONFIG = """\
base_model: acme/no-such-model-anywhere
datasets:
  - path: acme/data
    type: alpaca
deepspeed: https://example.org/zero3.json
plugins:
  - code_of_the_config.Plugin
trust_remote_code: true
micro_batch_size: 8
"""
COMMANDS = [("check",), ("check", "--diff", "--unsafe-fixes"), ("check", "--fix"), ("estimate",)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(CONFIG)
    (tmp_path / "known.yaml").write_text(CONFIG.replace("acme/no-such-model-anywhere", "Qwen/Qwen3-8B"))
    (tmp_path / "code_of_the_config.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("config", ["run.yaml", "known.yaml"])
def test_no_socket_is_opened_and_nothing_is_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], config: str
):
    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    name, *options = command
    result = CliRunner().invoke(main, [name, *options, "--gpus", "1x a100-80gb", config], catch_exceptions=False)
    assert result.exit_code in (0, 1)
    assert "imported" not in result.output


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system ['touch ran']",
        "!!python/name:os.system",
        "!!python/module:code_of_the_config",
        "!!python/object/new:code_of_the_config.Plugin {}",
        "!<tag:yaml.org,2002:python/object/apply:os.system> ['touch ran']",
        "!own {a: 1}",
    ],
)
def test_a_tag_runs_nothing_and_is_refused(folder: Path, value: str):
    (folder / "run.yaml").write_text(f"base_model: Qwen/Qwen3-8B\nx: {value}\n")
    for command in (("check",), ("check", "--fix"), ("estimate", "--gpus", "1x t4")):
        result = CliRunner().invoke(main, [*command, "run.yaml"], catch_exceptions=False)
        assert result.exit_code == 2 and "run.yaml:2:4" in result.output
    assert not (folder / "ran").exists()


RULE = """\
from pathlib import Path

from advisor import Example, Rule

Path("ran").touch()
rule = Rule(id="house-rule", stage="lint", title="A rule", why="-", source="-", examples=(Example(before="base_model: x"),))
"""


def test_rules_of_a_repository_that_is_looked_at_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cloned, here = tmp_path / "cloned", tmp_path / "here"
    (cloned / "rules_here").mkdir(parents=True)
    here.mkdir()
    (cloned / "advisor.toml").write_text('rules = ["rules_here"]\nignore = ["house-rule"]\n')
    (cloned / "rules_here" / "house_rule.py").write_text(RULE)
    (cloned / "run.yaml").write_text(
        "base_model: Qwen/Qwen3-8B\nlearning_rate: 1e-5\ndatasets: [{path: tatsu-lab/alpaca, type: alpaca}]\n"
    )
    monkeypatch.chdir(here)
    result = CliRunner().invoke(main, ["check", "../cloned/run.yaml"])
    assert result.exit_code == 0
    assert "are not run" in result.output
    monkeypatch.chdir(cloned)
    assert CliRunner().invoke(main, ["check", "run.yaml"]).exit_code == 0
    assert not (here / "ran").exists() and not (cloned / "ran").exists()
