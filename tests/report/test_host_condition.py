"""What a verdict takes of the hosts stands wherever the verdict does."""

import json
from dataclasses import replace

import pytest

from advisor.engine.blocking import in_one_line
from advisor.memory.ledger import HostTerm
from advisor.report import render_check, render_estimate

from .samples import CHECKPOINTING, DOES_NOT_FIT, FITS, LINT, estimate, gib

CONDITION = "with 105 GiB of host memory a node"  # 89.7 + 15, rounded up
OFFLOADED = replace(FITS, estimate=estimate(60, 61, 66.2, host=True))
assert CHECKPOINTING.fix is not None
STEP = replace(
    CHECKPOINTING, fix=replace(CHECKPOINTING.fix, verdict="fits", condition=f", {CONDITION}"), message="a step"
)
PLANNED = replace(
    DOES_NOT_FIT, findings=(DOES_NOT_FIT.findings[0], STEP), planned=estimate(60, 61, 66.2, host=True), skipped=()
)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("full", f"fits 8x A100-80GB SXM, {CONDITION}: 61.0 to 66.2 of 78.2 GiB"),
        ("concise", f"fits 8x A100-80GB SXM, {CONDITION}: 61.0 to 66.2 of 78.2 GiB"),
        ("markdown", f"66.2 of 78.2, {CONDITION} |"),
    ],
)
def test_a_verdict_says_what_it_takes_of_the_hosts(form: str, words: str):
    assert words in flat(render_check([OFFLOADED], form))
    assert "host memory" not in render_check([FITS], form)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("concise", f"GiB per GPU: fits, {CONDITION} [*]"),
        ("github", f"GiB per GPU: fits, {CONDITION}; same training"),
        ("markdown", f"1 step, then fits, {CONDITION}: 61.0 to 66.2 of 78.2 GiB"),
    ],
)
def test_the_end_of_a_plan_says_what_it_takes_of_the_hosts(form: str, words: str):
    assert words in flat(render_check([PLANNED], form))


def test_json_has_the_bytes():
    (run,) = json.loads(render_check([OFFLOADED], "json"))["runs"]
    assert run["memory"]["host_peak"] == gib(89.7) + gib(15)


def test_the_estimate_and_the_launch_say_it_too():
    assert f"fits, {CONDITION} (12.0 GiB to spare)" in flat(render_estimate(OFFLOADED))
    assert in_one_line(OFFLOADED).startswith(f"fits 66.2 of 78.2 GiB, {CONDITION}")
    assert in_one_line(FITS).startswith("fits ")
    assert "host" not in in_one_line(LINT)


def test_a_run_that_does_not_fit_anyway_has_no_condition():
    assert estimate(90.7, 90.7, 95, host=True).condition == ""


def test_a_few_paged_states_are_no_condition():
    pages = HostTerm("paged optimizer states", gib(0.3), False, "", "", paged=True)
    found = replace(estimate(60, 61, 66.2), host=(pages,))
    assert found.condition == ""
    assert replace(found, host=(replace(pages, paged=False),)).condition == ", with 1 GiB of host memory a node"
    assert replace(found, host=(replace(pages, bytes=gib(60)),)).condition == ", with 60 GiB of host memory a node"
