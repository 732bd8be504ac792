"""What axolotl's schema refuses is an error here, said by the rule that the table of refusals names."""

from pathlib import Path

import pytest

from advisor.engine.registry import built_in_rules
from advisor.schemas.refusals import looked_up, refusals

from ..oracles.refusals import Case, cases

CASES = tuple(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_axolotl_refuses_is_an_error(tmp_path: Path, case: Case):
    assert case.rule in case.errors(tmp_path)


def test_every_row_of_the_table_has_a_case(tmp_path: Path):
    left = {id(row): row for rules in refusals().values() for rows in rules.values() for row in rows}
    for case in CASES:
        run = case.run(tmp_path)
        left = {key: row for key, row in left.items() if not row.holds(run, looked_up(run))}
    assert [(row.rule, row.at, dict(row.when)) for row in left.values()] == []


def test_every_rule_of_the_table_is_there():
    lint = built_in_rules("lint")
    assert refusals().keys() <= lint.keys()
    assert all(lint[name].level == "error" and not lint[name].fatal for name in refusals())


def test_no_finding_of_the_table_without_its_message(tmp_path: Path):
    messages = [
        hit.message
        for case in CASES
        if case.rule in refusals()
        for hit in built_in_rules("lint")[case.rule].finds(case.run(tmp_path))
    ]
    assert messages and all("refuses the config" in message and "; " in message for message in messages)


def test_a_refusal_holds_from_its_version_on(tmp_path: Path):
    new = [case for case in CASES if case.config.get("ple_cpu_offload")]
    old = [Case(case.name, case.rule, case.config, case.gpus, {"axolotl": "0.18.0"}) for case in new]
    assert new
    assert all(case.rule in case.errors(tmp_path) for case in new)
    assert not any(case.rule in case.errors(tmp_path) for case in old)
