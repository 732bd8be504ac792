"""The list of mutants fits the sources that it names."""

import pytest

from .run import ROOT, Mutant, listed


@pytest.mark.parametrize("mutant", listed(), ids=lambda one: one.name)
def test_what_a_mutant_replaces_stands_once_and_its_near_tests_are_there(mutant: Mutant):
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert all((ROOT / place).exists() for place in mutant.near)
