import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from advisor.report import render_check, render_estimate, schema_models

from .samples import DOES_NOT_FIT, FITS, JSON_ALONE, LINT, ROOM, TIGHT, gib

SCHEMA = json.loads(schema_models.FILE.read_text(encoding="utf-8"))


def checked(*reports: Any) -> Any:
    return json.loads(render_check(reports, "json"))


def validator(definition: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]})


def test_the_schema_on_disk_is_what_the_models_say():
    assert schema_models.FILE.read_text(encoding="utf-8") == schema_models.text(), (
        "run `python -m advisor.report.schema_models`"
    )


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_kind_of_check_output_keeps_to_the_schema():
    output = checked(FITS, TIGHT, DOES_NOT_FIT, LINT, ROOM, JSON_ALONE)
    validator("CheckOutput").validate(output)
    jsonschema.Draft202012Validator(SCHEMA).validate(output)


@pytest.mark.parametrize("report", [DOES_NOT_FIT, LINT], ids=["known", "unknown"])
def test_every_kind_of_estimate_output_keeps_to_the_schema(report: Any):
    validator("EstimateOutput").validate(json.loads(render_estimate(report, "json")))


@pytest.mark.parametrize("key", ["verdict", "findings", "memory"])
def test_the_schema_refuses_a_run_that_lacks_a_key(key: str):
    output = checked(FITS)
    del output["runs"][0][key]
    assert not validator("CheckOutput").is_valid(output)


def test_fields_may_be_added_within_the_version():
    output = checked(FITS)
    output["runs"][0]["later"] = 1
    assert validator("CheckOutput").is_valid(output)


def test_a_step_carries_its_edits_as_byte_ranges():
    (run,) = checked(DOES_NOT_FIT)["runs"]
    common = ["file", "hardware", "verdict", "memory", "time", "row_length"]
    assert list(run) == [*common, "findings", "skipped", "answer", "plan", "flowchart", "against"]
    assert run["findings"][1] == {
        "rule": "zero-2",
        "level": "note",
        "message": "`deepspeed` names ZeRO-1, which shards optimizer states only; name a ZeRO-2 file",
        "url": "https://arxiv.org/abs/1910.02054",
        "location": {"file": "llama.yaml", "line": 3, "column": 12, "endLine": 3, "endColumn": 40},
        "fix": {
            "applicability": "safe",
            "memory": {"before": gib(90.7), "after": gib(88.1)},
            "time": None,
            "edits": [
                {
                    "file": "llama.zero-2.json",
                    "start": 0,
                    "end": 0,
                    "text": '{\n  "zero_optimization": {"stage": 2}\n}\n',
                    "create": True,
                },
                {"file": "llama.yaml", "start": 67, "end": 95, "text": "llama.zero-2.json", "create": False},
            ],
        },
        "sequence": None,
    }
    assert run["skipped"] == [{"rule": "zero-3", "reason": "would not lower the peak: 90.7 -> 91.2 GiB per GPU"}]


def test_findings_keep_their_order_so_that_steps_apply_one_after_another():
    (run,) = checked(DOES_NOT_FIT)["runs"]
    rules = [finding["rule"] for finding in run["findings"]]
    assert rules == ["does-not-fit", "zero-2", "gradient-checkpointing", "lora"]


def test_a_fix_without_known_memory_has_none():
    (run,) = checked(LINT)["runs"]
    assert [finding["fix"] and finding["fix"]["memory"] for finding in run["findings"]] == [None, None, None]
    assert run["findings"][1]["fix"]["applicability"] == "safe"
    assert run["memory"] is None


def test_a_finding_about_the_whole_file_is_at_line_1():
    (run,) = checked(LINT)["runs"]
    place = {"file": "llama.yaml", "line": 1, "column": 1, "endLine": 1, "endColumn": 1}
    assert run["findings"][2]["location"] == place


def test_a_source_that_is_no_address_gives_no_url():
    (run,) = checked(LINT)["runs"]
    assert run["findings"][1]["url"] is None


def test_memory_sums_up():
    memory = json.loads(render_estimate(DOES_NOT_FIT, "json"))["memory"]
    assert sum(memory["parts"].values()) == memory["allocated_peak"]
    for phase in memory["phases"]:
        assert sum(term["bytes"] for term in phase["terms"]) == phase["bytes"]
    assert memory["host_peak"] == gib(89.7) + gib(15)
    assert memory["needed"] == {"low": gib(90.7), "high": gib(95)}
    assert memory["peak_phase"] == "backward"


def test_estimate_says_file_and_hardware_first():
    output = json.loads(render_estimate(DOES_NOT_FIT, "json"))
    assert list(output) == ["version", "advisor", "file", "hardware", "verdict", "memory", "time", "row_length"]
    assert output["verdict"] == "does-not-fit"


def test_text_outside_ascii_is_left_readable():

    assert '"file": "训练.yaml"' in render_check([replace(FITS, file="训练.yaml")], "json")
