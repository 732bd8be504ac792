"""What the texts for agents say is so: the commands run, the fields are there, the files are small."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from advisor.cli.main import main

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "plugins" / "agents"
TEXTS = ("SKILL.md", "axolotl-docs.md")
COMMAND = re.compile(r"^(advisor .*?)(?:\s{2,}#.*)?$", re.MULTILINE)
SAMPLE = ROOT / "sample_configs" / "lora-8b-large-batch.yaml"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.53 GiB\n"
)


def commands() -> list[str]:
    blocks = [
        block for name in TEXTS for block in re.findall(r"```sh\n(.*?)```", (FOLDER / name).read_text(), re.DOTALL)
    ]
    return [line for block in blocks for line in COMMAND.findall(block)]


@pytest.mark.parametrize("command", commands())
def test_every_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name in ("run.yaml", "config.yaml"):
        shutil.copy(SAMPLE, name)
    Path("train.log").write_text(OOM)
    result = CliRunner().invoke(main, shlex.split(command)[1:])
    assert result.exit_code in {0, 1}, result.output


def test_there_are_commands_of_all_kinds():
    assert {line.split()[1] for line in commands()} == {"check", "hardware", "estimate", "rule", "oom"}


@pytest.mark.parametrize("name", TEXTS)
def test_the_fields_are_in_the_json(name: str):
    result = CliRunner().invoke(main, ["check", "--gpus", "1x rtx-4090", "--output-format", "json", str(SAMPLE)])
    run: Any = json.loads(result.output)["runs"][0]
    fields = set(re.findall(r"`((?:findings|memory|time|plan|verdict|fix)[\w.\[\]]*)`", (FOLDER / name).read_text()))
    assert len(fields) > 4
    for field in fields:
        at: Any = run if not field.startswith("fix.") else run["findings"][-1]
        for part in field.split("."):
            at = at[part.removesuffix("[]")]
            at = at[-1] if part.endswith("[]") else at


def test_a_skill_has_a_name_and_says_when_to_use_it():
    text = (FOLDER / "SKILL.md").read_text()
    head = yaml.safe_load(text.split("---")[1])
    assert head["name"] == "axolotl-advisor" and "Use it whenever" in head["description"]
    assert len(head["description"]) <= 1024 and len(text) < 5000
