"""What is written from the published runs is what they say today, and no more is fitted than is told."""

import re
from pathlib import Path

import pytest

from advisor.accuracy.fitted import FITTED

from .renew import BEGIN, END, RANGES, part_of, ranges_text, written

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MEMORY = ROOT / "advisor" / "memory"


def test_the_ranges_that_ship_are_those_that_the_published_runs_give():
    assert RANGES.read_text(encoding="utf-8") == ranges_text(), "run `make accuracy` and read the diff"


def test_the_figures_in_the_texts_are_those_of_today():
    for file, part in written().items():
        text = file.read_text(encoding="utf-8")
        assert text.count(BEGIN) == text.count(END) == 1
        assert part_of(text) == part, "run `make accuracy` and read the diff"


def test_five_constants_at_most_are_fitted_and_each_is_where_it_is_said_to_be():
    assert 1 <= len(FITTED) <= 5
    for one in FITTED:
        file, _, function = one.place.partition(": ")
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), one.place


def test_what_the_arithmetic_calls_measured_is_among_the_fitted():
    places = {ROOT / one.place.partition(": ")[0] for one in FITTED}
    said = re.compile("measured, not derived|fitted|post hoc", re.IGNORECASE)
    found = {file for file in MEMORY.rglob("*.py") if said.search(file.read_text(encoding="utf-8"))}
    assert found
    assert found <= places
