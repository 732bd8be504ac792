"""The workflow of a release: built once, tried on every Python of CI, published by a job that runs nothing of ours."""

import re
from typing import Any

import pytest
import yaml

from ..json_schemas import validator_of
from .places import ROOT

FOLDER = ROOT / ".github" / "workflows"


def workflow(name: str) -> dict[str, Any]:
    # YAML 1.1, which PyYAML reads, takes the key `on` for true.
    read = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in read.items()}


RELEASE = workflow("release.yml")
JOBS: dict[str, Any] = RELEASE["jobs"]
STEPS: list[dict[str, Any]] = [step for job in JOBS.values() for step in job["steps"]]
SCRIPTS: list[str] = [step["run"] for step in STEPS if "run" in step]


def test_it_is_a_workflow_and_runs_on_tags_of_versions_alone():
    validator_of("github-workflow").validate(RELEASE)
    assert RELEASE["on"] == {"push": {"tags": ["v*"]}}


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.iterdir()))
def test_every_workflow_is_one(name: str):
    validator_of("github-workflow").validate(workflow(name))


def test_one_job_follows_the_other():
    assert {name: job.get("needs") for name, job in JOBS.items()} == {
        "build": None,
        "try": "build",
        "publish": "try",
        "release": "publish",
    }
    assert JOBS["build"]["steps"][2]["run"].startswith('make release-ready TAG="$GITHUB_REF_NAME"'), (
        "the tag comes first"
    )


def test_it_is_built_once_and_tried_on_the_pythons_of_ci():
    assert sum(script.startswith("make dist ") for script in SCRIPTS) == 1
    assert JOBS["try"]["strategy"]["matrix"] == workflow("ci.yml")["jobs"]["test"]["strategy"]["matrix"]


def test_each_verb_is_in_the_makefile():
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {verb for script in SCRIPTS for verb in re.findall(r"make (?:-s )?([a-z-]+)", script)}
    assert named == {"release-ready", "dist", "release-check", "web-archive", "notes", "dist-try"} and named <= verbs


@pytest.mark.parametrize("name", sorted(JOBS))
def test_a_job_may_do_what_it_needs_and_no_more(name: str):
    needed = {"publish": {"id-token": "write"}, "release": {"contents": "write"}}
    assert RELEASE["permissions"] == {"contents": "read"}
    assert JOBS[name].get("permissions") == needed.get(name)


@pytest.mark.parametrize("name", ["publish", "release"])
def test_what_may_write_runs_no_code_of_the_repository(name: str):
    assert not any("checkout" in step.get("uses", "") or "make " in step.get("run", "") for step in JOBS[name]["steps"])


def test_publishing_asks_an_environment_and_knows_no_password():
    assert JOBS["publish"]["environment"]["name"] == "pypi"
    *_, last = JOBS["publish"]["steps"]
    assert last == {"uses": "pypa/gh-action-pypi-publish@release/v1"}
    assert "secrets" not in (FOLDER / "release.yml").read_text(encoding="utf-8")


def test_actions_are_pinned_to_a_major_version():
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used and all(re.fullmatch(r"(?:actions/[\w-]+@v\d+|pypa/[\w-]+@release/v\d+)", name) for name in used)


def test_no_expression_becomes_part_of_a_script():
    assert not [script for script in SCRIPTS if "${{" in script]


def test_what_is_fetched_was_kept():
    def names(what: str) -> list[str]:
        return [step["with"]["name"] for step in STEPS if step.get("uses", "").startswith(f"actions/{what}-artifact@")]

    assert set(names("download")) == set(names("upload")) and len(names("upload")) == len(set(names("upload")))
