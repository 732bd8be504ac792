"""Evaluation that takes a large part of the training's time."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without
from advisor.learning.schedule import number

MUCH = 0.25
"""Of the training's time."""
WELL = 0.1
"""What the remedy leaves of it."""
STEP, AGAIN = 3, 4
"""A forward and a backward in forwards; with checkpoints, whose backward computes the forward once more."""


def finds(run: Run) -> Iterator[Hit]:
    """Where a share of the rows is held back, and read so often in each epoch that the forwards add up."""
    held, evaluations = number(run, "val_set_size") or 0.0, number(run, "evals_per_epoch") or 0.0
    if not 0 < held < 1:
        return
    of_one = held / (1 - held) / (AGAIN if run.activation_checkpointing else STEP)
    share = evaluations * of_one
    if share < MUCH:
        return
    fewer = max(1, int(WELL / of_one))
    remedy = f"`evals_per_epoch: {fewer}` takes {fewer * of_one:.0%}" if fewer < evaluations else "hold fewer rows back"
    message = (
        f"{evaluations:g} evaluations an epoch on {held:.0%} of the rows take about {share:.0%} of the training's "
        "time, more where they are padded"
    )
    yield Hit("evals_per_epoch", f"{message}; {remedy}")


rule = Rule(
    id="evaluation-takes-long",
    stage="lint",
    title="Evaluation takes a large part of the time",
    finds=finds,
    level="note",
    proof="accepts",
    why="""
        Each evaluation runs a forward over all rows that `val_set_size` holds back. A training step takes three times a
        forward's operations, four with checkpoints, so that the share of the time follows from how many rows are held
        back and how often they are read. A thousand rows tell a loss to a few per cent.
    """,
    source="https://arxiv.org/abs/2001.08361, 2.1: 2 operations a parameter and token forward, 4 backward",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-1.5B",
            "gradient_checkpointing: true",
            "val_set_size: 0.1",
            "evals_per_epoch: 20",
            fires=True,
        ),
        but("evals_per_epoch: 8"),
        but("evals_per_epoch: 8", "gradient_checkpointing: false", fires=True),
        but("val_set_size: 0.6", "evals_per_epoch: 1", fires=True),
        but("val_set_size: 500"),
        but("val_set_size: 1"),
        but("val_set_size: 0"),
        but("evals_per_epoch: 0"),
        but("val_set_size: some"),
        without("evals_per_epoch"),
    ),
)
