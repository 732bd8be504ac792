import json
import re
from dataclasses import replace
from typing import Any

from advisor.engine.finding import Place, Report
from advisor.report import render_check

from .samples import DOES_NOT_FIT, FITS, LINT, TIGHT, YAML


def issues(*reports: Report) -> list[dict[str, Any]]:
    return json.loads(render_check(reports, "gitlab"))


def fingerprint(line: int, text: str, message: str = "m") -> str:
    finding = replace(TIGHT.findings[0], message=message, place=Place("llama.yaml", line, 1, line, 2))
    (issue,) = issues(replace(TIGHT, findings=(finding,), texts={"llama.yaml": text}))
    return issue["fingerprint"]


def test_an_issue_a_finding():
    found = issues(LINT)
    assert [{k: v for k, v in issue.items() if k != "fingerprint"} for issue in found] == [
        {
            "description": "`bf16: true` on a V100, which has no bf16 units: the launch fails or crawls; use fp16",
            "check_name": "bf16-unsupported",
            "severity": "minor",
            "location": {"path": "llama.yaml", "lines": {"begin": 4}},
        },
        {
            "description": "`zero_optimization.offload_param` with stage 2: DeepSpeed refuses it "
            "at the start; remove it",
            "check_name": "offload-param-without-zero-3",
            "severity": "critical",
            "location": {"path": "zero2.json", "lines": {"begin": 4, "end": 6}},
        },
        {
            "description": "the hardware is unknown, so memory was not estimated",
            "check_name": "no-hardware",
            "severity": "info",
            "location": {"path": "llama.yaml", "lines": {"begin": 1}},
        },
    ]


def test_nothing_found_is_an_empty_array():
    assert render_check([FITS], "gitlab") == "[]"


def test_fingerprints_differ_within_a_report_even_between_like_findings():
    marks = [issue["fingerprint"] for issue in issues(DOES_NOT_FIT, DOES_NOT_FIT, LINT)]
    assert len(set(marks)) == len(marks) == 11
    assert all(re.fullmatch("[0-9a-f]{64}", mark) for mark in marks)


def test_a_fingerprint_survives_lines_above_and_new_numbers():
    assert fingerprint(3, YAML, "77.0 GiB") == fingerprint(5, "# two\n# lines\n" + YAML, "76.1 GiB")


def test_a_fingerprint_changes_with_the_line_it_speaks_of():
    assert fingerprint(3, YAML) != fingerprint(2, YAML)
