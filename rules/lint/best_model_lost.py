"""The best checkpoint is asked for, and axolotl takes the last without a word."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.learning.schedule import holds_rows_back, steps_between

KEY = "load_best_model_at_end"


def finds(run: Run) -> Iterator[Hit]:
    """Where one of axolotl's conditions for it does not hold."""
    if not run.is_on(KEY) or run.config.get("early_stopping_patience"):
        return
    if why := lost(run):
        yield Hit(KEY, f"`{KEY}: true` is silently ignored: {why}")


def lost(run: Run) -> str:
    """Why it is lost and what gives it back, or nothing."""
    if run.rl is not None:
        return f"with `rl: {run.rl}` axolotl does not pass it on; pick the checkpoint by its loss"
    if not holds_rows_back(run):
        return "no rows are evaluated; set `val_set_size` or `test_datasets`"
    saves, evaluates = steps_between(run, "save_steps"), steps_between(run, "eval_steps")
    if saves is None or evaluates is None:
        return "both checkpoints and evaluations must come by steps; set `save_steps` and `eval_steps`"
    if saves % evaluates:
        return f"checkpoints come every {saves:g}, evaluations every {evaluates:g}: write one as a multiple"
    return ""


rule = Rule(
    id="best-model-lost",
    stage="lint",
    title="The best checkpoint is asked for, and the last is taken",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        axolotl hands the key on only where rows are evaluated from one source, both checkpoints and evaluations come by
        steps, and the steps of the first divide by those of the second: as floats, so that 1/3 after 1 has a remainder.
        Else the run ends with the last weights, and no line of the log says so.
    """,
    source="axolotl/core/builders/causal.py:248-261@0.19.0; axolotl/utils/config/__init__.py:247-263@0.19.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            f"{KEY}: true",
            "val_set_size: 0.1",
            "eval_steps: 200",
            "save_steps: 300",
            fires=True,
        ),
        but("save_steps: 400"),
        but(f"{KEY}: false"),
        but("early_stopping_patience: 3"),
        but("save_steps: 400", without=("eval_steps",), fires=True),
        but("eval_steps: 100", without=("save_steps",), fires=True),
        but("save_steps: 400", without=("val_set_size",), fires=True),
        but("save_steps: 400", "test_datasets:\n  - path: someone/rows", without=("val_set_size",)),
        but("save_steps: 400", "rl: dpo", fires=True),
        but("saves_per_epoch: 2", "evals_per_epoch: 2", without=("eval_steps", "save_steps")),
    ),
)
