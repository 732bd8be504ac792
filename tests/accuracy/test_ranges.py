"""Ranges from measured runs: how they are derived, which entry speaks for a run, and what the estimate says of it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from advisor.accuracy.errors import percentile
from advisor.accuracy.judging import Judged, judged
from advisor.accuracy.ranges import LEAST_RUNS, derived, reserved_range, slack_of, slack_under_pressure
from advisor.memory import estimate
from advisor.memory.evidence import published_evidence
from advisor.memory.ranges import fragmentation, reservation
from advisor.memory.run_kind import ANY, kind_of, sharding_of
from advisor.run import Run

Make = Callable[..., Run]
LORA = "base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nlora_r: 8\nlora_target_linear: true\nbf16: true\n"
ZERO_3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'
OLD = {"expandable_segments": False}


@pytest.fixture(scope="module")
def cases() -> list[Judged]:
    return judged()


def test_a_percentile_is_a_measured_value():
    assert [percentile([4, 1, 3, 2], share) for share in (0.0, 0.25, 0.5, 0.9, 1.0)] == [1, 1, 2, 4, 4]


def test_the_fewer_sources_show_a_range_the_wider_it_is(cases: list[Judged]):
    known = [case for case in cases if case.reserved is not None and sharding_of(case.run) == "ZeRO-3"]
    one_source = [replaced(case, source="one") for case in known]
    few, many = reserved_range(one_source), reserved_range(known)
    assert (few.sources, few.runs) == (1, many.runs)
    assert few.low < many.low
    assert few.high > many.high


def replaced(case: Judged, **changes: object) -> Judged:
    """The same run, but for its facts."""
    return Judged(replace(case.case, **changes), case.run, case.estimate)


def test_runs_at_the_limit_of_their_card_do_not_show_what_is_reserved_with_room(cases: list[Judged]):
    squeezed = [replaced(case, near_limit=True) for case in cases]
    assert derived(squeezed).reserved == {}


def test_fragmentation_is_above_the_worst_certain_failure_and_shown_by_a_run_that_went_through(cases: list[Judged]):
    by_id = {case.case.id: case for case in cases}
    for slack in published_evidence().needed.values():
        passed = slack_of(by_id[slack.passed])
        assert passed is not None
        assert passed <= slack.share <= passed + 0.002
        if slack.failed:
            failed = by_id[slack.failed]
            assert 0 < failed.usable / failed.estimated - 1 < slack.share


def test_an_inferred_failure_moves_nothing(cases: list[Judged]):
    mine = [case for case in cases if sharding_of(case.run) == "FSDP1"]
    inferred = [replaced(case, confidence="med") for case in mine]
    certain, without = slack_under_pressure(mine), slack_under_pressure(inferred)
    assert certain is not None
    assert certain.failed
    assert without is not None
    assert without.failed is None


def test_a_kind_with_runs_of_its_own_says_how_many(make_run: Make):
    run = make_run(LORA.replace("lora", "qlora", 1).replace("qlora_r", "lora_r") + "load_in_4bit: true\n", stack=OLD)
    run = replace(run, activation_checkpointing=True)
    entry = published_evidence().reserved[kind_of(run)]
    assert entry.runs >= LEAST_RUNS
    found = estimate(run)
    assert found is not None
    assert any(f"{entry.runs} published runs of this kind ({kind_of(run)})" in note for note in found.notes)


@pytest.mark.parametrize(("gpus", "deepspeed"), [("2x a100-80gb", None), ("8x a100-80gb", ZERO_3.replace("3", "2", 1))])
def test_a_kind_that_nobody_measured_gets_the_widest_range_and_says_so(make_run: Make, gpus, deepspeed):
    run = make_run(LORA, gpus, deepspeed, OLD)
    evidence = published_evidence()
    found = reservation(run, evidence)
    assert found.key == ANY
    for entry in evidence.reserved.values():
        assert found.low <= entry.low
        assert found.high >= entry.high
    assert fragmentation(run, evidence).share == max(slack.share for slack in evidence.needed.values())
    result = estimate(run)
    assert result is not None
    assert any(f"too few are {kind_of(run)}" in note for note in result.notes)
    assert any(f"no published run at its limit has {sharding_of(run)}" in note for note in result.notes)


def test_expandable_segments_leave_part_of_the_slack_where_only_runs_without_are_known(make_run: Make):
    evidence = published_evidence()
    assert evidence.pairs >= 20
    with_them, without = (make_run(LORA, stack={"expandable_segments": flag}) for flag in (True, False))
    assert reservation(with_them, evidence).scaled
    assert 1 < reservation(with_them, evidence).high < reservation(without, evidence).high
    assert fragmentation(with_them, evidence).share < fragmentation(without, evidence).share


def test_expandable_segments_are_taken_from_runs_that_have_them_where_there_are_such(make_run: Make):
    run = make_run(
        "base_model: meta-llama/Llama-3.1-8B\nbf16: true\ngradient_checkpointing: false\n", "8x a100-80gb", ZERO_3
    )
    found = reservation(run, published_evidence())
    assert (found.key, found.scaled) == (kind_of(run), False)
    assert found.runs == published_evidence().reserved_expandable[kind_of(run)].runs


@pytest.mark.parametrize(("trainer", "torch"), [*product(("axolotl", "hf-trainer"), ("2.1.2", "2.8.0", "2.13.0"))])
def test_axolotl_turns_expandable_segments_on_from_torch_2_2(make_run: Make, trainer, torch):
    from advisor.memory.run_kind import expandable_segments

    run = make_run(LORA, stack={"trainer": trainer, "torch": torch})
    assert expandable_segments(run) == (trainer == "axolotl" and torch != "2.1.2")


def test_fragmentation_is_never_less_than_estimates_are_too_low(make_run: Make):
    evidence = published_evidence()
    assert 0 < evidence.underestimated < 0.06
    run = make_run(LORA, "1x a100-80gb")
    low = replace(evidence, needed={key: replace(slack, share=0.0) for key, slack in evidence.needed.items()})
    assert fragmentation(run, low).share == evidence.underestimated
