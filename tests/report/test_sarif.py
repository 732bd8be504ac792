import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from advisor.finding import Finding, Place, Report
from advisor.report import render_check

from .samples import DOES_NOT_FIT, FITS, LINT, ROOM, TIGHT, gib

EVERY_KIND = (FITS, TIGHT, DOES_NOT_FIT, LINT, ROOM)


def run_of(*reports: Report) -> dict[str, Any]:
    (run,) = json.loads(render_check(reports, "sarif"))["runs"]
    return run


def test_every_kind_of_report_keeps_to_the_oasis_schema():
    schema = Path(os.environ.get("ADVISOR_CORPUS", "nowhere"), "facts", "sarif-schema-2.1.0.json")
    if not schema.is_file():
        pytest.skip("needs sarif-schema-2.1.0.json among the facts of ADVISOR_CORPUS")
    validator = jsonschema.Draft7Validator(json.loads(schema.read_text(encoding="utf-8")))
    validator.validate(json.loads(render_check(EVERY_KIND, "sarif")))
    validator.validate(json.loads(render_check([FITS], "sarif")))


def test_the_log_names_version_and_tool():
    log = json.loads(render_check([FITS], "sarif"))
    assert log["version"] == "2.1.0"
    assert log["$schema"] == "https://json.schemastore.org/sarif-2.1.0.json"
    driver = log["runs"][0]["tool"]["driver"]
    assert driver["name"] == "advisor"
    assert driver["rules"] == log["runs"][0]["results"] == []


def test_each_result_names_its_rule_by_id_and_by_index():
    run = run_of(*EVERY_KIND)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted(set(rules))
    assert len(run["results"]) == 9
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]


def test_a_rule_is_described_by_its_finding():
    run = run_of(DOES_NOT_FIT)
    (zero_2,) = (rule for rule in run["tool"]["driver"]["rules"] if rule["id"] == "zero-2")
    title = "Shard optimizer states and gradients across the GPUs (ZeRO-2)"
    page = f"{title}\n\nCost: no extra traffic\n\nSource: https://arxiv.org/abs/1910.02054"
    assert zero_2 == {
        "id": "zero-2",
        "name": "Zero2",
        "shortDescription": {"text": title},
        "fullDescription": {"text": title},
        "help": {"text": page, "markdown": f"**{title}**\n\n{page}"},
        "helpUri": "https://arxiv.org/abs/1910.02054",
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": ["memory"], "problem.severity": "recommendation"},
    }


def test_a_result_points_at_its_span():
    result = run_of(DOES_NOT_FIT)["results"][0]
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("90.7 to 95.0 GiB needed")
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "llama.yaml"},
        "region": {"startLine": 3, "startColumn": 12, "endLine": 3, "endColumn": 40},
    }


def test_a_finding_about_the_whole_file_has_line_1():
    assert run_of(LINT)["results"][2]["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}


def test_a_path_is_a_uri():
    finding = Finding("a", "error", "m", Place("my configs/ä.yaml"))
    (result,) = run_of(replace(LINT, findings=(finding,)))["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "my%20configs/%C3%A4.yaml"


def test_descriptions_keep_to_what_github_takes():
    finding = replace(LINT.findings[0], why="w" * 5000, title="t" * 5000)
    (rule,) = run_of(replace(LINT, findings=(finding,)))["tool"]["driver"]["rules"]
    assert len(rule["shortDescription"]["text"]) == len(rule["fullDescription"]["text"]) == 1024


def test_the_estimates_are_properties_of_the_run():
    known, unknown = run_of(DOES_NOT_FIT, LINT)["properties"]["estimates"]
    assert known["verdict"] == "does-not-fit"
    assert known["memory"]["needed"] == {"low": gib(90.7), "high": gib(95)}
    assert unknown == {"file": "llama.yaml", "hardware": None, "verdict": "unknown", "memory": None}
