"""A share of the training data for evaluation, where axolotl takes none."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, only
from advisor.learning.schedule import refuses_split

KEY = "val_set_size"


def finds(run: Run) -> Iterator[Hit]:
    """With data of its own for evaluation, or a stream, which has no length to take a share of."""
    value, key = run.config.get(KEY), refuses_split(run)
    if not value:
        return
    if key == "test_datasets":
        message = f"`{KEY}: {value}` with `test_datasets` is refused by axolotl, which evaluates on one; remove it"
        yield Hit(KEY, message, (Remove(KEY),))
    elif key:
        why = "a stream has no length to take a share of"
        message = f"`{KEY}: {value}` with `{key}` is refused by axolotl: {why}; use `test_datasets` instead"
        yield Hit(KEY, message, (Remove(KEY),))


rule = Rule(
    id="validation-split-refused",
    stage="lint",
    title="A share of the data for evaluation, where none can be taken",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        `val_set_size` sets a part of the training data aside. axolotl does not mix that with data that is named for
        evaluation, and cannot do it with data that is read as it comes.
    """,
    safe=False,
    source="axolotl/utils/schemas/validation.py:114-121, 1514-1532@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                val_set_size: 0.05
                test_datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                    split: train
                evals_per_epoch: 1
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                test_datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                    split: train
                evals_per_epoch: 1
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                streaming: true
                max_steps: 1000
                val_set_size: 0.01
                eval_steps: 100
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                streaming: true
                max_steps: 1000
                eval_steps: 100
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                val_set_size: 0
                test_datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                    split: train
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "val_set_size: 0.1"),
    ),
)
