"""Rows that are held back for an evaluation that never comes."""

from collections.abc import Iterator

from advisor import Hit, Remove, Rule, Run, Set, but, only, without
from advisor.learning.schedule import evaluation_comes, number

KEY = "val_set_size"
EXPECTED = ("load_best_model_at_end", "metric_for_best_model", "eval_table_size", "do_causal_lm_eval", "do_bench_eval")
"""Keys that use what the evaluation says."""


def finds(run: Run) -> Iterator[Hit]:
    """Where nothing says when to evaluate, or what says so comes to once in the run, which axolotl drops."""
    if not (number(run, KEY) or 0) > 0 or evaluation_comes(run) or run.config.get("early_stopping_patience"):
        return
    if run.config.get("eval_strategy") is not None:
        return  # "no", in so many words
    times, kept = run.config.get("evals_per_epoch"), f"`{KEY}` keeps rows out of training, and"
    if not times:
        message = (
            f"{kept} nothing evaluates them: neither `eval_strategy` nor `eval_steps`; write `eval_strategy: epoch`"
        )
        yield Hit(KEY, message, (Set("eval_strategy", "epoch", after=KEY),))
    elif any(run.config.get(name) for name in EXPECTED):
        message = f"{kept} axolotl drops `evals_per_epoch: {times}` where that is once in the run or less: nothing is"
        edits = (Remove("evals_per_epoch"), Set("eval_strategy", "epoch", after=KEY))
        yield Hit("evals_per_epoch", f"{message} evaluated; write `eval_strategy: epoch` in its place", edits)


rule = Rule(
    id="held-back-rows-unused",
    stage="lint",
    title="Rows that are held back for an evaluation that never comes",
    finds=finds,
    level="warning",
    proof="read",
    offer=True,
    safe=True,
    why="""
        The trainer's own default is not to evaluate. axolotl sets a time only for `eval_steps`, for `eval_strategy`,
        and for an `evals_per_epoch` that comes to more than once in the whole run: 1 over evaluations times epochs must
        be below 1. Without one, the rows are taken out of training and no loss is ever printed for them.
    """,
    cost="Evaluation takes its time, at the start and after each epoch.",
    source=(
        "axolotl/utils/config/__init__.py:255-263@0.19.0; axolotl/core/builders/base.py:523-533@0.19.0; "
        "transformers/training_args.py:1080-1085@5.16.1"
    ),
    examples=(
        only("base_model: Qwen/Qwen2.5-7B", "val_set_size: 0.05", fires=True),
        but("evals_per_epoch: 1", "metric_for_best_model: eval_loss", fires=True),
        but("evals_per_epoch: 1"),
        but("evals_per_epoch: 1", "num_epochs: 2", "metric_for_best_model: eval_loss"),
        but("eval_steps: 100"),
        but("eval_strategy: epoch"),
        but('eval_strategy: "no"'),
        but("evaluation_strategy: epoch"),
        but("early_stopping_patience: 3"),
        without("val_set_size"),
    ),
)
