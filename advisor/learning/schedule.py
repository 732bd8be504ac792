"""When a run evaluates and saves, by axolotl's own arithmetic."""

import math
from typing import Literal

from advisor.run import Run

PER_EPOCH = {"eval_steps": "evals_per_epoch", "save_steps": "saves_per_epoch"}

FLOAT_BITS = 1000
"""Of an integer; a longer one has no float."""


def number(run: Run, key: str) -> float | None:
    """The number at a key (`trl.beta`), or None: not given, no number, or one beyond all floats."""
    value = run.config.at(key)
    if not isinstance(value, int | float) or (isinstance(value, int) and value.bit_length() > FLOAT_BITS):
        return None
    return float(value) if math.isfinite(value) else None


def epochs_of(run: Run) -> float:
    """Epochs of a run: axolotl/utils/schemas/training.py, ``num_epochs``@0.19.0."""
    return number(run, "num_epochs") or 1.0


def holds_rows_back(run: Run) -> bool:
    """Whether some rows are kept for evaluation."""
    return (number(run, "val_set_size") or 0) > 0 or bool(run.config.get("test_datasets"))


def refuses_split(run: Run) -> str | None:
    """The key next to which axolotl refuses ``val_set_size``: utils/schemas/validation.py:114-121,1514-1532@0.19.0."""
    keys = ("test_datasets", "pretraining_dataset", "streaming")
    return next((key for key in keys if run.config.get(key)), None)


def steps_between(run: Run, key: Literal["eval_steps", "save_steps"]) -> float | None:
    """Steps from one evaluation or checkpoint to the next, below 1 as a share of the run; None where none are set.

    So many an epoch count only where they come to a share below 1: axolotl/utils/config/__init__.py:248-263@0.19.0.
    """
    times = number(run, PER_EPOCH[key])
    if times and times * epochs_of(run) > 1:
        return 1.0 / (times * epochs_of(run))
    return number(run, key) or None


def evaluation_comes(run: Run) -> bool:
    """Whether the trainer evaluates at all: axolotl/core/builders/base.py:523-533@0.19.0."""
    strategy = run.config.get("eval_strategy") or run.config.get("evaluation_strategy")
    timed = steps_between(run, "eval_steps") is not None or strategy not in (None, "", "no", False)
    return holds_rows_back(run) and timed
