"""The estimate against published, measured runs: the bars that it must stay within."""

from statistics import mean

import pytest
from click.testing import CliRunner

from advisor.accuracy import Judged, judged, rows
from advisor.accuracy.table import LEAST_RUNS, percentile
from advisor.cli import main
from advisor.units import GIB


@pytest.fixture(scope="module")
def cases() -> list[Judged]:
    return judged()


def test_the_median_of_no_judged_group_is_off_by_more_than_three_percent(cases: list[Judged]):
    large = [row for row in rows(cases) if row.runs >= LEAST_RUNS]
    assert len(large) >= 8
    assert mean(row.median for row in large) <= 0.01
    assert all(row.median <= 0.03 for row in large), [(row.name, row.median) for row in large]


def test_nine_runs_of_ten_are_within_six_percent_and_there_is_no_bias(cases: list[Judged]):
    errors = [case.error for case in cases if case.case.counts]
    assert len(errors) >= 120
    assert percentile([abs(error) for error in errors], 0.9) <= 0.06
    assert abs(mean(errors)) <= 0.03


def test_no_run_that_went_through_is_said_not_to_fit(cases: list[Judged]):
    wrong = [case.case.id for case in cases if not case.case.out_of_memory and case.estimate.verdict == "does-not-fit"]
    assert wrong == []


def test_no_run_that_surely_ran_out_of_memory_is_said_to_fit(cases: list[Judged]):
    sure = [case for case in cases if case.case.out_of_memory and case.case.confidence == "high"]
    assert len(sure) >= 6
    assert [case.case.id for case in sure if case.estimate.verdict == "fits"] == []


def test_the_reserved_range_holds_nine_of_ten_figures(cases: list[Judged]):
    known = [(case, case.reserved_gib) for case in cases if case.reserved_gib and not case.case.out_of_memory]
    inside = [c for c, g in known if c.estimate.reserved_peak.low <= g * GIB <= c.estimate.reserved_peak.high]
    assert len(inside) >= 0.9 * len(known)


def test_the_table_names_its_sources_and_what_it_lacks():
    result = CliRunner().invoke(main, ["accuracy"])
    assert result.exit_code == 0
    for part in ("all runs", "16 bytes a parameter", "DeepSpeed's estimate_zero2/3", "fms-acceleration", "FSDP2"):
        assert part in result.output
