"""What the trainer can do only with an evaluation, in a run that has none."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.learning.schedule import evaluation_comes

BY_LOSS = ("reduce_lr_on_plateau", "greedy")
"""Schedules that follow the loss of the evaluation."""


def finds(run: Run) -> Iterator[Hit]:
    """A schedule, or an end of the run, that follows evaluations which never come."""
    if evaluation_comes(run):
        return
    name = run.config.get("lr_scheduler")
    if name in BY_LOSS:
        message = f"`lr_scheduler: {name}` stops without an evaluation, whose loss it follows; set `val_set_size` and"
        yield Hit("lr_scheduler", f"{message} `eval_strategy: epoch`, or take `cosine`")
    patience = run.config.get("early_stopping_patience")
    if patience and run.config.get("eval_steps") and run.config.get("save_steps") and run.rl is None:
        message = f"`early_stopping_patience: {patience}` stops the run at its first step: no rows are evaluated;"
        yield Hit("early_stopping_patience", f"{message} set `val_set_size` or `test_datasets`")


rule = Rule(
    id="evaluation-required",
    stage="lint",
    title="A schedule or an end that follows evaluations which never come",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        transformers refuses these schedules where its `eval_strategy` is "no", once the model is loaded. Early stopping
        asserts the same when training begins. axolotl writes "no" where no rows are held back, whatever `eval_steps`
        says, and checks neither.
    """,
    source=(
        "transformers/training_args.py:1749-1757@5.16.1; transformers/trainer_callback.py:744-755@5.16.1; "
        "axolotl/core/builders/base.py:523-533@0.19.0; axolotl/core/builders/causal.py:127-131@0.19.0"
    ),
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "lr_scheduler: reduce_lr_on_plateau", fires=True),
        but("lr_scheduler: greedy", "val_set_size: 0.1", fires=True),
        but("val_set_size: 0.1", "eval_strategy: epoch"),
        but("lr_scheduler: cosine"),
        but("lr_scheduler: cosine", "early_stopping_patience: 3", "eval_steps: 50", "save_steps: 50", fires=True),
        but("lr_scheduler: cosine", "early_stopping_patience: 3", "eval_steps: 50"),
        but("lr_scheduler: cosine", "early_stopping_patience: 3", "save_steps: 50"),
        but("lr_scheduler: cosine", "eval_steps: 50", "save_steps: 50"),
        but("lr_scheduler: cosine", "early_stopping_patience: 3", "eval_steps: 50", "save_steps: 50", "rl: dpo"),
    ),
)
