import subprocess
import sys

import pytest

from advisor.report import FORMATS

SLOW = (
    "pydantic",
    "jsonschema",
    "torch",
    "transformers",
    "difflib",
    "importlib.metadata",
    "hashlib",
    "urllib",
)
PROGRAM = """
import sys
from advisor.engine.finding import Report
before = set(sys.modules)
from advisor.report import render_check, render_estimate
report = Report("a.yaml", None, "unknown", None, ())
{call}
print(*(set(sys.modules) - before))
"""


def loaded(call: str) -> set[str]:
    command = [sys.executable, "-c", PROGRAM.format(call=call)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("name", ["full", "concise"])
def test_text_loads_nothing_slow_and_no_other_format(name: str):
    modules = loaded(f"render_check([report], {name!r})")
    assert f"advisor.report.{name}" in modules
    assert modules.isdisjoint({*SLOW})
    others = {*FORMATS.values(), "rule_page", "estimate", "schema_models"} - {name}
    assert modules.isdisjoint(f"advisor.report.{other}" for other in others)


def test_json_loads_nothing_slow():
    modules = loaded("render_check([report], 'json'); render_estimate(report, 'json')")
    assert "advisor.report.as_json" in modules
    assert modules.isdisjoint({*SLOW, "advisor.report.full", "advisor.report.estimate"})


def test_the_table_of_formats_costs_the_start_of_a_command_nothing():
    program = "import sys, advisor.cli.main; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "advisor.report" in modules
    assert {"advisor.memory", "advisor.report.wording", "yaml"}.isdisjoint(modules)
