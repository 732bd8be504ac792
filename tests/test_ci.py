"""The workflow of this repository runs what ``.ci/run`` runs, on every Python that the wheel is for."""

import re
from pathlib import Path
from typing import Any

import yaml

from advisor.util import toml_library

from .json_schemas import validator_of

ROOT = Path(__file__).parents[1]
# YAML 1.1, which PyYAML reads, takes the key `on` for true.
READ = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
WORKFLOW: dict[str, Any] = {"on" if key is True else key: value for key, value in READ.items()}
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
PROJECT = toml_library().loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_it_is_a_workflow():
    validator_of("github-workflow").validate(WORKFLOW)


def test_it_makes_what_the_script_makes():
    checks = re.search(r"^for check in (.+); do$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert checks
    made = {step["run"].split()[1] for step in STEPS if step.get("run", "").startswith("make ")}
    assert made == {"setup", *checks[1].split()}


def test_the_fast_tests_run_on_every_python_that_the_wheel_is_for():
    named = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_actions_are_pinned_to_a_major_version():
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@v\d+", name) for name in used)


def test_it_may_only_read():
    assert WORKFLOW["permissions"] == {"contents": "read"}
