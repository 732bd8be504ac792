"""Evaluation whose rows are not made as those of training."""

from collections.abc import Iterator

from advisor import Hit, Remove, Rule, Run, but, only, without
from advisor.learning.schedule import evaluation_comes, number

KEY = "eval_sample_packing"
DECIDES = ("load_best_model_at_end", "metric_for_best_model", "early_stopping_patience")
"""Keys by which the loss of the evaluation decides something."""


def finds(run: Run) -> Iterator[Hit]:
    """Rows that were prepared for packing with the others, split off, and then not packed.

    Only where that loss decides something, or each row is a batch, so that all rows count alike.
    """
    if not run.sample_packing or run.packs_evaluation or not evaluation_comes(run):
        return
    decides = any(run.config.get(key) for key in DECIDES)
    if (decides or run.eval_batch_size == 1) and (number(run, "val_set_size") or 0) > 0:
        message = (
            f"`{KEY}: false` while training packs: its loss is a mean over rows of any length, not over tokens, and"
        )
        yield Hit(KEY, f"{message} the last of them are dropped, which could mislead; remove it", EDIT)


EDIT = (Remove(KEY),)
rule = Rule(
    id="evaluation-unlike-training",
    stage="lint",
    title="Evaluation whose rows are not made as those of training",
    finds=finds,
    level="note",
    proof="accepts",
    offer=True,
    safe=True,
    why="""
        Rows of `val_set_size` are split off after all rows were prepared for packing, without their mask. Unpacked,
        each batch of them counts alike, a short row as much as a long one, and axolotl drops the last batch that is not
        full. A reported loss of Gemma 3 was far above that of the same rows packed.
    """,
    cost="Evaluation packs its rows, so it needs the memory of training's rows.",
    source=(
        "axolotl/core/builders/causal.py:204-205@0.19.0; axolotl/utils/data/sft.py:347-355,436-447@0.19.0; "
        "https://github.com/axolotl-ai-cloud/axolotl/issues/3465"
    ),
    examples=lambda: (
        only(
            "base_model: google/gemma-3-1b-pt",
            "sample_packing: true",
            "attn_implementation: flash_attention_2",
            f"{KEY}: false",
            "val_set_size: 0.05",
            "evals_per_epoch: 4",
            "micro_batch_size: 2",
            "metric_for_best_model: eval_loss",
            fires=True,
        ),
        but("sample_packing: false"),
        but(f"{KEY}: true"),
        without("evals_per_epoch"),
        without("metric_for_best_model"),
        but("eval_batch_size: 1", without=("metric_for_best_model",), fires=True),
        but("test_datasets:\n  - path: someone/rows", without=("val_set_size",)),
    ),
)
