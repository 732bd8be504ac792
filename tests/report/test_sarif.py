import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.documents import Edit
from advisor.engine.finding import Finding, Fix, Place, Report
from advisor.report import render_check

from ..json_schemas import validator_of
from .samples import DOES_NOT_FIT, FITS, LINT, ROOM, TIGHT, YAML, gib

EVERY_KIND = (FITS, TIGHT, DOES_NOT_FIT, LINT, ROOM)


def run_of(*reports: Report) -> dict[str, Any]:
    (run,) = json.loads(render_check(reports, "sarif"))["runs"]
    return run


def test_every_kind_of_report_keeps_to_the_oasis_schema():
    validator = validator_of("sarif")
    validator.validate(json.loads(render_check(EVERY_KIND, "sarif")))
    validator.validate(json.loads(render_check([FITS], "sarif")))
    assert not validator.is_valid({"version": "2.1.0", "runs": [{"results": []}]})


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


def test_a_rule_of_several_lines_is_no_code_block():
    finding = replace(LINT.findings[0], why="\n        One reason,\n        and its end.\n    ")
    (rule,) = run_of(replace(LINT, findings=(finding,)))["tool"]["driver"]["rules"]
    assert rule["fullDescription"]["text"] == "One reason, and its end."
    assert "\n\nOne reason, and its end.\n\nSource: " in rule["help"]["markdown"]


def mark(line: int, text: str, message: str = "m") -> str:
    finding = replace(TIGHT.findings[0], message=message, place=Place("llama.yaml", line, 1, line, 2))
    (result,) = run_of(replace(TIGHT, findings=(finding,), texts={"llama.yaml": text}))["results"]
    return result["partialFingerprints"]["advisorFinding/v1"]


def test_a_fingerprint_survives_lines_above_and_new_numbers_but_not_another_line():
    assert mark(3, YAML, "77.0 GiB") == mark(5, "# two\n# lines\n" + YAML, "76.1 GiB")
    assert mark(3, YAML) != mark(2, YAML)


def test_fingerprints_differ_within_a_run():
    marks = [result["partialFingerprints"]["advisorFinding/v1"] for result in run_of(*EVERY_KIND)["results"]]
    assert len(set(marks)) == len(marks)


def test_the_hash_that_github_computes_is_left_to_it():
    """Its upload action complains of any other value under this name."""
    assert all("primaryLocationLineHash" not in r["partialFingerprints"] for r in run_of(*EVERY_KIND)["results"])


def fixes_of(text: str, *edits: Edit, step: int | None = None) -> list[Any]:
    finding = replace(TIGHT.findings[0], fix=Fix(True, edits), step=step)
    (result,) = run_of(replace(TIGHT, findings=(finding,), texts={"llama.yaml": text}))["results"]
    return result.get("fixes", [])


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_a_fix_says_in_lines_and_columns_what_the_edits_say_in_bytes(mark: str):
    text = f"{mark}name: ü # ü\r\nbf16: true\r\n"
    at = text.encode().index(b"true")
    (fix,) = fixes_of(text, Edit("llama.yaml", at, at + 4, "false"), Edit("llama.yaml", at + 6, at + 6, "fp16: true\n"))
    assert fix == {
        "description": {"text": "same training"},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": "llama.yaml"},
                "replacements": [
                    {
                        "deletedRegion": {"startLine": 2, "startColumn": 7, "endLine": 2, "endColumn": 11},
                        "insertedContent": {"text": "false"},
                    },
                    {
                        "deletedRegion": {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 1},
                        "insertedContent": {"text": "fp16: true\n"},
                    },
                ],
            }
        ],
    }


def test_a_later_step_and_a_new_file_are_no_fixes_of_the_files_that_are_there():
    change = Edit("llama.yaml", 0, 4, "x")
    assert fixes_of(YAML, change, step=1)
    assert not fixes_of(YAML, change, step=2)
    assert not fixes_of(YAML, change, Edit("new.json", 0, 0, "{}", create=True))


def test_a_path_below_the_checkout_is_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    finding = Finding("a", "error", "m", Place(str(tmp_path / "configs" / "a.yaml")))
    (result,) = run_of(replace(LINT, findings=(finding,)))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "configs/a.yaml"
