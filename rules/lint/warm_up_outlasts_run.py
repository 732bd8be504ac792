"""A warm-up that is as long as the run."""

from collections.abc import Iterator

from advisor import Hit, Remove, Rule, Run, Set, but, only, without
from advisor.learning.schedule import number

SHARE = 0.1
WITHOUT = ("constant", "greedy", "reduce_lr_on_plateau")
"""Schedules that never warm up."""


def finds(run: Run) -> Iterator[Hit]:
    """Steps that reach the last one, or a share of the run that does."""
    steps, last = number(run, "warmup_steps"), number(run, "max_steps")
    share = number(run, "warmup_ratio") if run.config.get("warmup_steps") is None else None
    if run.config.get("lr_scheduler") in WITHOUT:
        return
    if steps is not None and last and steps >= last > 2:
        message = f"`warmup_steps: {steps:g}` lasts to the end of `max_steps: {last:g}`: the rate"
        edits = (Remove("warmup_steps"), Set("warmup_ratio", SHARE, after="max_steps"))
        yield Hit("warmup_steps", f"{message} is silently below `learning_rate` throughout; write a tenth", edits)
    elif share is not None and share >= 1:
        message = (
            f"`warmup_ratio: {share:g}` is a share of the run: the rate is silently below `learning_rate` throughout"
        )
        yield Hit("warmup_ratio", f"{message}; write a share, such as {SHARE}", (Set("warmup_ratio", SHARE),))


rule = Rule(
    id="warm-up-outlasts-run",
    stage="lint",
    title="A warm-up that is as long as the run",
    finds=finds,
    level="warning",
    proof="read",
    safe=False,
    why="""
        While it warms up, the rate is the step's number over the steps of the warm-up, times `learning_rate`. A run
        that ends first has been trained at half the rate on average, never at the one that is written, and never cooled
        down.
    """,
    cost="The rate rises within the first tenth of the run.",
    source="transformers/optimization.py:104-107,149-153@5.16.1; axolotl/core/builders/base.py:235-268@0.19.0",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "warmup_steps: 100", "max_steps: 50", fires=True),
        but("warmup_steps: 10"),
        but("lr_scheduler: constant"),
        but("max_steps: 2"),
        without("max_steps"),
        without("warmup_steps"),
        but("warmup_ratio: 10", without=("warmup_steps", "max_steps"), fires=True),
        but("warmup_ratio: 0.1", without=("warmup_steps", "max_steps")),
        but("warmup_steps: 5", "warmup_ratio: 10", without=("max_steps",)),
    ),
)
