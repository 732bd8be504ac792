"""What axolotl's READMEs claim, compared with the estimates."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor import estimate
from advisor.accuracy.claims import claims, middle_error, training_peak
from advisor.cli.main import main

RESTATED = Path(__file__).parents[2] / "advisor" / "accuracy" / "claims.jsonl"
ANOTHER_VARIANT = {"CLAIM-11", "CLAIM-54"}
"""Claims of the example after an edit that its README describes."""


def restated() -> list[dict[str, object]]:
    return [json.loads(line) for line in RESTATED.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_every_claim_is_shown_and_none_is_dropped():
    output = CliRunner().invoke(main, ["accuracy"]).output
    found = list(claims())
    assert len(found) == 31
    for claim in found:
        lines = [line for line in output.splitlines() if line.startswith(claim.config.removeprefix("examples/"))]
        ending = "excluded" if claim.excluded else claim.reason or ("in" if claim.held else "out")
        assert any(f"{claim.claimed_gib:.1f}" in line and line.endswith(ending) for line in lines), claim.id


def test_a_claim_about_an_unknown_model_says_so():
    unknown = [claim for claim in claims() if claim.reserved is None]
    assert all("not in the catalogue" in claim.reason for claim in unknown)
    assert all(not claim.held for claim in unknown)


def test_a_claim_is_left_out_or_compared_under_other_versions_with_a_commit_or_a_date_alone():
    found = list(claims())
    assert sum(bool(claim.excluded) for claim in found) <= 8
    for claim in found:
        assert bool(claim.proof) == bool(claim.excluded or claim.stack), claim.id
        assert not claim.proof or re.search(r"\b([0-9a-f]{7,9}|\d{4}-\d\d-\d\d)\b", claim.proof), claim.id


def test_nine_in_ten_of_the_claims_that_are_compared_lie_in_the_range():
    compared = [claim for claim in claims() if claim.compared]
    assert len(compared) >= 22
    assert sum(claim.held for claim in compared) >= 0.9 * len(compared)
    assert middle_error(compared) <= 0.1


def test_the_load_is_no_part_of_what_a_claim_is_compared_with():
    claim = next(claim for claim in claims() if claim.id == "CLAIM-24")
    said = next(said for said in restated() if said["id"] == claim.id)
    whole = estimate(said["axolotl"], gpus=said["gpus"])
    assert claim.allocated < whole.allocated_peak
    assert whole.peak_phase == "load"


def test_claims_carry_the_figures_of_the_collection(corpus: Path):
    lines = (corpus / "measured" / "axolotl_claims.jsonl").read_text(encoding="utf-8").splitlines()
    theirs = {said["id"]: (said["config"], said["claimed_gib"], said["quoted_in"]) for said in map(json.loads, lines)}
    assert {claim.id: (claim.config, claim.claimed_gib, claim.quoted_in) for claim in claims()} == theirs


@pytest.mark.parametrize("said", restated(), ids=lambda said: said["id"])
def test_the_facts_restated_give_the_same_estimate_as_the_example(corpus: Path, said):
    if said["id"] in ANOTHER_VARIANT:
        pytest.skip("the README's variant, not the file")
    claim = next(claim for claim in claims() if claim.id == said["id"])
    if claim.reserved is None:
        pytest.skip(claim.reason)
    whole = estimate(corpus / "corpus" / "axolotl" / said["config"], gpus=said["gpus"], stack=claim.stack)
    assert training_peak(whole) == claim.allocated
