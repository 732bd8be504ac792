"""When a run evaluates and saves, as axolotl works it out."""

from collections.abc import Callable

import pytest

from advisor.learning.packing import mixing_of
from advisor.learning.schedule import evaluation_comes, steps_between
from advisor.run import Run

MakeRun = Callable[..., Run]
MODEL = "base_model: Qwen/Qwen2.5-0.5B"


@pytest.mark.parametrize(
    ("lines", "steps"),
    [
        ("evals_per_epoch: 4\nnum_epochs: 2", 0.125),
        ("evals_per_epoch: 1\nnum_epochs: 1", None),
        ("evals_per_epoch: 1", None),
        ("evals_per_epoch: 2", 0.5),
        ("eval_steps: 50", 50),
        ("eval_steps: 0", None),
        ("eval_steps: often", None),
        ("", None),
    ],
)
def test_so_many_an_epoch_count_where_they_are_more_than_one_in_the_run(
    make_run: MakeRun, lines: str, steps: float | None
):
    assert steps_between(make_run(f"{MODEL}\n{lines}"), "eval_steps") == steps


@pytest.mark.parametrize(
    ("lines", "comes"),
    [
        ("val_set_size: 0.1\neval_strategy: epoch", True),
        ("val_set_size: 0.1\nevaluation_strategy: epoch", True),
        ("val_set_size: 0.1\nevals_per_epoch: 1", False),
        ("val_set_size: 0.1\neval_strategy: 'no'", False),
        ("val_set_size: 0\neval_steps: 50", False),
        ("test_datasets: [{path: d}]\neval_steps: 50", True),
    ],
)
def test_evaluation_needs_rows_and_a_time(make_run: MakeRun, lines: str, comes: bool):
    assert evaluation_comes(make_run(f"{MODEL}\n{lines}")) is comes


@pytest.mark.parametrize(
    ("lines", "mixes"),
    [
        ("base_model: ai21labs/Jamba-v0.1", True),
        ("base_model: facebook/opt-1.3b", True),
        ("base_model: facebook/opt-1.3b\nattn_implementation: flash_attention_2", False),
        (MODEL, False),
        ("base_model: nobody/knows-this", False),
    ],
)
def test_a_run_finds_what_mixes_its_packed_samples(make_run: MakeRun, lines: str, mixes: bool):
    assert (mixing_of(make_run(lines)) is not None) is mixes
