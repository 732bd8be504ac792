"""The table of usual values: its rows are sound, and a run finds the one that is meant."""

import itertools
import json
from collections.abc import Callable

import pytest

from advisor.learning import band_of, method_of
from advisor.learning.bands import BANDS, Band, bands
from advisor.run import Run

MakeRun = Callable[..., Run]
SMALL, MIDDLE, LARGE, LARGEST = (
    f"base_model: {name}"
    for name in ("Qwen/Qwen2.5-0.5B", "meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-32B", "meta-llama/Llama-3.1-70B")
)


@pytest.mark.parametrize("band", bands(), ids=lambda band: "-".join((band.key, band.methods[0], band.training[0])))
def test_a_default_lies_in_its_band_and_has_a_source(band: Band):
    assert 0 < band.low <= band.default <= band.high
    assert band.source and set(band.training) <= {"full", "lora", "qlora"}
    assert (band.at_least or 0) < (band.below or float("inf"))


def test_no_two_rows_are_for_the_same_run():
    for one, other in itertools.combinations(bands(), 2):
        alike = (
            one.key == other.key and set(one.methods) & set(other.methods) and set(one.training) & set(other.training)
        )
        ends = [(band.at_least or 0, band.below or float("inf")) for band in (one, other)]
        assert not alike or max(low for low, _ in ends) >= min(high for _, high in ends), (one, other)


def test_an_adapters_rates_are_above_those_of_all_weights():
    rates = [band for band in bands() if band.key == "learning_rate"]
    full = {method: band for band in rates if band.training == ("full",) for method in band.methods}
    for band in rates:
        for method in band.methods:
            assert "full" in band.training or band.default > full[method].default


def test_the_file_says_what_its_columns_are():
    about = json.loads(BANDS.read_text(encoding="utf-8"))["about"]
    assert {"training", "at_least", "default", "source", "weak"} == about.keys()


@pytest.mark.parametrize(
    ("lines", "training", "default", "ends"),
    [
        (SMALL, None, 2e-5, (2e-6, 1e-4)),
        (MIDDLE, None, 1e-5, (1e-6, 5e-5)),
        (LARGE, None, 1e-5, (1e-6, 3e-5)),
        (LARGEST, None, 5e-6, (1e-6, 3e-5)),
        (MIDDLE, "lora", 2e-4, (2e-5, 1e-3)),
        (f"{MIDDLE}\nadapter: lora", None, 2e-4, (2e-5, 1e-3)),
        (f"{MIDDLE}\nadapter: lora", "qlora", 2e-4, (2e-5, 5e-4)),
        (LARGEST, "qlora", 1e-4, (2e-5, 5e-4)),
        (f"{MIDDLE}\nrl: dpo", None, 5e-7, (5e-8, 5e-6)),
        (f"{MIDDLE}\nrl: ipo", "qlora", 5e-6, (5e-7, 5e-5)),
        (f"{MIDDLE}\nrl: grpo", "lora", 1e-5, (1e-7, 1e-4)),
        (f"{MIDDLE}\nreward_model: true", None, 5e-6, (1e-6, 5e-5)),
        (f"{MIDDLE}\npretraining_dataset: [{{path: d}}]", None, 2e-5, (5e-6, 3e-4)),
        ("base_model: nobody/knows-this", "lora", 2e-4, (2e-5, 1e-3)),
    ],
)
def test_a_run_finds_the_band_of_its_method_and_size(
    make_run: MakeRun, lines: str, training: str | None, default: float, ends: tuple[float, float]
):
    band = band_of(make_run(lines), training)
    assert band is not None
    assert (band.default, (band.low, band.high)) == (default, ends)


@pytest.mark.parametrize(
    ("lines", "training"),
    [
        (f"{MIDDLE}\nrl: simpo", "lora"),
        (f"{MIDDLE}\nrl: ebft", None),
        (f"{MIDDLE}\nreward_model: true", "lora"),
        (f"{MIDDLE}\nprocess_reward_model: true", None),
        ("base_model: nobody/knows-this", "full"),
    ],
)
def test_where_no_source_says_there_is_no_band(make_run: MakeRun, lines: str, training: str | None):
    assert band_of(make_run(lines), training) is None
    assert band_of(make_run(MIDDLE), "full", key="weight_decay") is None


def test_pretraining_from_scratch_is_a_method_of_its_own(make_run: MakeRun):
    lines = f"{MIDDLE}\npretraining_dataset: [{{path: d}}]\nreinit_weights: true"
    assert method_of(make_run(lines)) == "pretraining-from-scratch"
