"""The snippets for CI: their YAML, that what they name is there, and that the README and the site have the same."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from advisor.about import REPOSITORY, VERSION
from advisor.cli.main import main

from .json_schemas import validator_of
from .texts import README, ROOT, TEXTS, page

SNIPPETS: dict[str, Any] = {
    name: yaml.safe_load(text) for name, text in re.findall(r"```yaml\n# (\.\S+)\n(.*?)```", TEXTS, re.DOTALL)
}


def test_the_readme_and_the_site_have_the_same_workflow():
    (short,) = re.findall(r"```yaml\n# .github/workflows/advisor.yml\n.*?```", README, re.DOTALL)
    assert short in page("ci")


def test_there_is_one_for_each_place():
    assert sorted(SNIPPETS) == [".github/workflows/advisor.yml", ".gitlab-ci.yml", ".pre-commit-config.yaml"]


def test_the_workflow_gives_the_action_inputs_that_it_has():
    workflow = SNIPPETS[".github/workflows/advisor.yml"]
    # YAML 1.1, which PyYAML reads, takes the key `on` for true.
    validator_of("github-workflow").validate({"on" if key is True else key: value for key, value in workflow.items()})
    *_, step = workflow["jobs"]["advisor"]["steps"]
    assert step["uses"] == f"{REPOSITORY.removeprefix('https://github.com/')}@v{VERSION}"
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert set(step["with"]) <= set(action["inputs"])


def test_the_gitlab_job_writes_the_report_that_it_names():
    job = SNIPPETS[".gitlab-ci.yml"]["advisor"]
    validator_of("gitlab-ci").validate(SNIPPETS[".gitlab-ci.yml"])
    (command,) = (line for line in job["script"] if line.startswith("advisor "))
    assert f"--output-format gitlab={job['artifacts']['reports']['codequality']}" in command
    assert job["artifacts"]["when"] == "always", "a job that fails must still hand over its report"
    assert job["script"][0] == f"pip install git+{REPOSITORY}@v{VERSION}"
    assert "slim" not in job["image"] and "alpine" not in job["image"], "these images have no git"


def test_the_gitlab_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "run.yaml").write_text(
        "base_model: a/b\nlearning_rate: 1e-5\ndatasets: [{path: tatsu-lab/alpaca, type: alpaca}]\n"
    )
    (command,) = (line for line in SNIPPETS[".gitlab-ci.yml"]["advisor"]["script"] if line.startswith("advisor "))
    result = CliRunner().invoke(main, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "gl-code-quality.json").read_text().startswith("[")


def test_the_hook_is_in_the_manifest_and_takes_its_arguments():
    (repository,) = SNIPPETS[".pre-commit-config.yaml"]["repos"]
    (hook,) = repository["hooks"]
    manifest = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (entry,) = (known["entry"] for known in manifest if known["id"] == hook["id"])
    command = main.commands["check"]
    assert entry == "advisor check --output-format pre-commit"
    command.make_context("check", [*hook["args"], "run.yaml"])
    with pytest.raises(click.NoSuchOption):
        command.make_context("check", ["--gpu", "1x t4", "run.yaml"])


@pytest.mark.parametrize("name", ["advisor-check", "advisor-fix"])
def test_the_page_names_every_hook(name: str):
    assert f"`{name}`" in page("ci")
