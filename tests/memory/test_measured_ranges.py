"""What a machine's own runs do to the reserved range."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from advisor.memory import estimate
from advisor.memory.evidence import published_evidence
from advisor.memory.ranges import published, reservation
from advisor.memory.run_kind import kind_of
from advisor.run import Run
from advisor.run.build import rebuilt
from advisor.run.history import MeasuredRun

CONFIG = "base_model: meta-llama/Llama-3.1-8B\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_target_linear: true\ngradient_checkpointing: true\n"


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    return make_run(CONFIG, gpus="1x h200")


def measured(run: Run, *ratios: float, **changes: object) -> Run:
    """The run on a machine that has measured these ratios of reserved to allocated bytes."""
    assert run.hardware is not None
    one = MeasuredRun(kind_of(run), run.hardware.gpu.id, 1, True, 10**9, 10**9, 0, 100, "2.13.0")
    runs = tuple(replace(one, reserved=round(ratio * 10**9), **changes) for ratio in ratios)
    return replace(run, measured=runs)


def width(run: Run) -> float:
    found = reservation(run, published_evidence())
    return found.high - found.low


def test_the_more_runs_agree_the_narrower_the_range(run: Run):
    widths = [width(measured(run, *[1.1] * count)) for count in range(5)]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 5
    assert widths[1] <= widths[0] / 2


def test_the_range_holds_every_measured_run_and_stays_within_the_published_one_around_them(run: Run):
    before = published(run, published_evidence())
    found = reservation(measured(run, 1.06, 1.15), published_evidence())
    assert before.low <= found.low <= 1.06
    assert 1.15 <= found.high <= before.high


def test_a_run_outside_the_published_range_is_believed(run: Run):
    before = published(run, published_evidence())
    found = reservation(measured(run, before.high + 0.3), published_evidence())
    assert found.high == pytest.approx(before.high + 0.3)
    assert found.low > before.low


@pytest.mark.parametrize(
    "change", [{"gpu": "a100-40gb-sxm"}, {"kind": "full, DDP, checkpointing"}, {"expandable": False}]
)
def test_other_gpus_kinds_and_allocators_say_nothing(run: Run, change: dict[str, object]):
    other = measured(run, 1.1, **change)
    assert reservation(other, published_evidence()) == published(run, published_evidence())


def test_the_estimate_says_what_narrowed_it_and_needs_what_it_needed(run: Run):
    before, after = estimate(run), estimate(measured(run, 1.1, 1.12))
    assert before is not None
    assert after is not None
    assert any("2 runs of this kind measured on this machine" in note for note in after.notes)
    assert not any("measured on this machine" in note for note in before.notes)
    assert after.reserved_peak.high < before.reserved_peak.high
    assert after.needed == before.needed


def test_an_edited_run_is_still_on_the_same_machine(run: Run):
    here = measured(run, 1.1)
    assert rebuilt(here, here.config, here.deepspeed).measured == here.measured
