"""Evaluations and checkpoints whose first step the run does not reach."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without
from advisor.learning.schedule import evaluation_comes, number, steps_between

LONG = 100
"""Steps from which on a run is worth resuming."""


def finds(run: Run) -> Iterator[Hit]:
    """Steps beyond ``max_steps``."""
    last = number(run, "max_steps")
    if not last or last <= 0:
        return
    evaluates = steps_between(run, "eval_steps")
    if evaluates is not None and evaluates > last and evaluation_comes(run):
        message = (
            f"`eval_steps: {evaluates:g}` silently never comes: the run ends at `max_steps: {last:g}`, and evaluates"
        )
        yield Hit("eval_steps", f"{message} before its first step alone; lower it", level="warning")
    saves = steps_between(run, "save_steps")
    if saves is not None and saves > last >= LONG:
        message = f"`save_steps: {saves:g}` is beyond `max_steps: {last:g}`: no checkpoint could be resumed from"
        yield Hit("save_steps", f"{message} before the end")


rule = Rule(
    id="steps-beyond-run",
    stage="lint",
    title="Evaluations and checkpoints that the run does not reach",
    finds=finds,
    level="note",
    proof="read",
    why="""
        The trainer evaluates and saves at multiples of these steps. axolotl adds one evaluation before the first step,
        and saves the model at the end of the run.
    """,
    source="axolotl/core/builders/base.py:508-533@0.19.0; transformers/trainer_callback.py:605-632@5.16.1",
    examples=lambda: (
        only("base_model: Qwen/Qwen3-8B", "max_steps: 50", "eval_steps: 100", "val_set_size: 0.1", fires=True),
        but("eval_steps: 25"),
        but("max_steps: 400", "save_steps: 500", without=("eval_steps",), fires=True),
        but("max_steps: 400", "save_steps: 100", without=("eval_steps",)),
        but("save_steps: 100", without=("eval_steps",)),
        but("max_steps: -1"),
        without("eval_steps"),
        without("val_set_size"),
        without("max_steps"),
    ),
)
