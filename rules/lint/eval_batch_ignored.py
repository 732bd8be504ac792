"""A batch of evaluation that packed rows do not have."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only

KEY = "eval_batch_size"


def finds(run: Run) -> Iterator[Hit]:
    """Where evaluation is packed: it fills bins of as many rows as training."""
    given = run.config.get(KEY)
    if run.evaluates and run.packs_evaluation and isinstance(given, int) and given != run.micro_batch_size:
        rows = "1 row" if run.micro_batch_size == 1 else f"{run.micro_batch_size} rows"
        message = f"`{KEY}: {given}` has no effect: evaluation is packed, into bins of {rows} as in training"
        yield Hit(KEY, f"{message}; with `eval_sample_packing: false` it has one")


rule = Rule(
    id="eval-batch-ignored",
    stage="lint",
    title="A batch of evaluation that packed rows do not have",
    finds=finds,
    level="note",
    proof="read",
    why="""
        axolotl's sampler of packed rows is made for training and evaluation alike: its bins hold `micro_batch_size`
        times `sequence_len` tokens in both. A smaller `eval_batch_size` lowers no peak, a larger one is no faster.
    """,
    source="axolotl/core/trainers/base.py:157-164,230-250@0.19.0",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sample_packing: true",
            "micro_batch_size: 2",
            "eval_batch_size: 8",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            fires=True,
        ),
        but("micro_batch_size: 1", fires=True),
        but("eval_batch_size: 2"),
        but("eval_sample_packing: false"),
        but("val_set_size: 0"),
        but(without=("eval_batch_size",)),
    ),
)
