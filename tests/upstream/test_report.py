"""The report of two environments, as a maintainer reads it."""

import json
from pathlib import Path
from typing import Any

from .cited import Citation
from .report import Observed, report

CASE = '<testcase classname="tests.oracles.test_layers" name="{name}">{end}</testcase>'
FAILED = "<failure/>"


def observed(folder: Path, version: str, keys: dict[str, Any], outcomes: dict[str, str], lines: list[str]) -> Observed:
    site = folder / "site"
    (site / f"peft-{version}.dist-info").mkdir(parents=True)
    (site / "peft").mkdir()
    (site / "peft" / "layer.py").write_text("\n".join(lines))
    table = {"version": version, "root": "Root", "levels": {"Root": {"forbids": False, "keys": keys}}}
    cases = "".join(CASE.format(name=name, end=end) for name, end in outcomes.items())
    written = {
        "versions.json": json.dumps({"sites": [str(site)], "versions": {"peft": version}}),
        "not-written.json": json.dumps({}),
        "axolotl.json": json.dumps(table),
        "oracles.xml": f"<testsuites><testsuite>{cases}</testsuite></testsuites>",
    }
    for name, text in written.items():
        (folder / name).write_text(text)
    return Observed(folder)


def test_it_names_keys_oracles_and_lines_that_changed(tmp_path: Path):
    old = {"a": {"kinds": ["int"]}, "b": {"kinds": ["str"]}, "c": {"kinds": ["str"], "since": "1.0"}}
    new = {"a": {"kinds": ["float"]}, "c": {"kinds": ["str"]}, "d": {"kinds": ["bool"]}}
    pinned = observed(tmp_path / "pinned", "1.0", old, {"llama": "", "gemma": ""}, ["x", "stop"])
    newest = observed(tmp_path / "newest", "2.0", new, {"llama": "", "gemma": FAILED}, ["x", "y", "stop"])
    cited = [
        Citation("peft/layer.py", 1, 1, "1.0", "rules/a.py:3"),
        Citation("peft/layer.py", 2, 2, "1.0", "rules/b.py:9"),
    ]
    text = report(pinned, newest, cited)
    assert (
        text
        == """\
# Upstream: what has changed since the pinned stack

| package | pinned | newest |
| --- | --- | --- |
| peft | 1.0 | 2.0 |

## Keys and defaults
- axolotl.json: 3
  - changed: `Root.a` {"kinds":["int"]} -> {"kinds":["float"]}
  - gone: `Root.b`
  - new: `Root.d` {"kinds":["bool"]}

## Oracles
- pinned: 2 passed; newest: 1 failed, 1 passed
- moved: 1
  - passed -> failed: `tests.oracles.test_layers::gemma`
- new and failing: none

## Cited lines
- 2 followed: 1 same, 1 moved
- to read again: none
- moved: 1
  - `peft/layer.py:2@1.0` begins at line 3 now (rules/b.py:9)
"""
    )


def test_a_long_list_is_cut_and_counted(tmp_path: Path):
    new = {f"k{number}": {"kinds": ["int"]} for number in range(50)}
    pinned = observed(tmp_path / "pinned", "1.0", {}, {}, [])
    text = report(pinned, observed(tmp_path / "newest", "2.0", new, {}, []), [])
    assert "- axolotl.json: 50\n" in text and "  - and 10 more\n" in text


def test_tables_that_cannot_be_written_are_said(tmp_path: Path):
    pinned = observed(tmp_path / "pinned", "1.0", {}, {}, [])
    newest = observed(tmp_path / "newest", "2.0", {}, {}, [])
    (newest.folder / "not-written.json").write_text(json.dumps({"key tables": "ImportError: no such name"}))
    assert "- **key tables cannot be written**: ImportError: no such name\n" in report(pinned, newest, [])
