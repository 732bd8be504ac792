"""What the texts for agents say is so: the commands run, the fields are there, the files are small."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from advisor.cli.main import main

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "plugins" / "agents"
SKILL = "axolotl-advisor/SKILL.md"
TEXTS = (SKILL, "axolotl-docs.md")
COMMAND = re.compile(r"^(advisor .*?)(?:\s{2,}#.*)?$", re.MULTILINE)
SAMPLE = ROOT / "sample_configs" / "lora-8b-large-batch.yaml"
TOO_LARGE = ROOT / "sample_configs" / "full-8b-out-of-memory.yaml"
FIELDS = {
    "verdict",
    "starts",
    "needed_gib",
    "usable_gib",
    "host_gib_per_node",
    "headline",
    "action",
    "options",
    "flags",
    "recommended",
    "steps",
    "findings",
    "level",
    "rule",
    "line",
    "message",
}
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
    kinds = {line.split()[1] for line in commands()}
    assert kinds == {"check", "hardware", "estimate", "rule", "oom", "new"}


@pytest.mark.parametrize("name", TEXTS)
def test_the_fields_are_in_the_answer(name: str):
    fields = set(re.findall(r"`([a-z_]+)`", (FOLDER / name).read_text())) & FIELDS
    assert len(fields) > 7
    result = CliRunner().invoke(main, ["check", "--gpus", "2x rtx-4090", "--output-format", "agent", str(TOO_LARGE)])
    (run,) = json.loads(result.output)["runs"]
    (chosen,) = (option for option in run["options"] if option.get("recommended"))
    assert fields <= {*run, *chosen, "starts", *run["findings"][0]}
    assert {option["id"] for option in run["options"]} <= {"A", "B", "F"}


def test_a_skill_has_the_form_of_the_convention_and_says_when_to_use_it():
    text = (FOLDER / SKILL).read_text()
    head = yaml.safe_load(text.split("---")[1])
    assert head["name"] == (FOLDER / SKILL).parent.name and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert "Use whenever" in head["description"] and len(head["description"]) <= 500
    assert len(head["compatibility"]) <= 500 and head["license"] == "Apache-2.0"
    assert set(head) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert len(text) < 5000
