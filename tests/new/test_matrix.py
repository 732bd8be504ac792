"""What `new` writes, read afresh: it fits, nothing speaks against it, and nothing is left to fix."""

import pytest

from advisor.engine.fix import fixed
from advisor.session import RunOptions
from advisor.session.text import check_config_text, text_session

from .matrix import Case, all_cases, few_cases, fitting, ways_of

OF_MEMORY = "does not fit"


def judged(case: Case) -> None:
    for way in ways_of(case):
        assert way.fits or way.why_not == OF_MEMORY, (case, way.title, way.why_not)
    for way in fitting(case):
        (file, text), *others = way.files.items()
        session = text_session(file, RunOptions(gpus=case[1]), files=dict(others))
        checked = check_config_text(text, file, session)
        assert checked.report.verdict == "fits", (case, way.title)
        against = [finding.rule for finding in checked.report.findings if finding.level != "note"]
        assert not against, (case, way.title)
        for unsafe in (False, True):
            again = fixed(checked.opened, session.options, unsafe=unsafe)
            assert not again.documents, (case, way.title, [done.rule for done in again.done])
        assert "as the plan's step writes it" not in text, (case, way.title)


@pytest.mark.parametrize("case", few_cases(), ids=lambda case: " ".join(case))
def test_what_is_written_fits_and_stays(case: Case):
    judged(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in all_cases() if case not in few_cases()][::3], ids=" ".join)
def test_what_is_written_fits_and_stays_everywhere(case: Case):
    judged(case)


def test_most_cases_have_a_way():
    cases = few_cases()
    assert sum(any(way.fits for way in ways_of(case)) for case in cases) > 0.8 * len(cases)
