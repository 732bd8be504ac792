"""Held-back rows that nothing evaluates."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, gib, only, without
from advisor.learning.schedule import evaluation_comes, number, refuses_split
from advisor.memory import Estimate, estimate
from advisor.record import replace

KEY = "val_set_size"
EXPECTED = ("load_best_model_at_end", "metric_for_best_model", "eval_table_size", "do_causal_lm_eval", "do_bench_eval")
"""Keys that use what the evaluation says."""


def finds(run: Run) -> Iterator[Hit]:
    """Where nothing says when to evaluate, or what says so comes to once in the run, which axolotl drops."""
    if not (number(run, KEY) or 0) > 0 or evaluation_comes(run) or run.config.get("early_stopping_patience"):
        return
    if run.config.get("eval_strategy") is not None:
        return  # "no", in so many words
    if refuses_split(run):
        return  # validation-split-refused says so
    times, kept = run.config.get("evals_per_epoch"), f"`{KEY}` keeps rows out of training, and"
    if not times:
        remedy, edits = evaluated(run)
        yield Hit(KEY, f"{kept} nothing evaluates them: neither `eval_strategy` nor `eval_steps`; {remedy}", edits)
    elif any(run.config.get(name) for name in EXPECTED):
        message = f"{kept} axolotl drops `evals_per_epoch: {times}` where that is once in the run or less: nothing is"
        edits = (Remove("evals_per_epoch"), Set("eval_strategy", "epoch", after=KEY))
        yield Hit("evals_per_epoch", f"{message} evaluated; write `eval_strategy: epoch` in its place", edits)


def evaluated(run: Run) -> tuple[str, tuple[Change, ...]]:
    """What to write, as far as an evaluation goes into the GPUs: it makes the logits of whole rows."""
    write, edit = "write `eval_strategy: epoch`", Set("eval_strategy", "epoch", after=KEY)
    now = estimate(run)
    if now is None:
        return write, (edit,)
    if now.verdict != "fits":
        return f"{write}; check again, evaluation takes memory of its own", (edit,)
    rows = evaluating(run, run.eval_batch_size)
    if rows.verdict == "fits":
        return write, (edit,)
    size = f"{gib(rows.needed.high)}, and there are {gib(rows.usable)}"
    if not run.packs_evaluation and evaluating(run, 1).verdict == "fits":
        why = f"an evaluation of {run.eval_batch_size} rows at once would need {size}"
        return f"{write} and `eval_batch_size: 1`: {why}", (edit, Set("eval_batch_size", 1, after="eval_strategy"))
    return f"remove `{KEY}`, or evaluate shorter rows: an evaluation would need {size}", ()


def evaluating(run: Run, rows: int) -> Estimate:
    """The memory of a run whose estimate is known, if it evaluated so many rows at once."""
    found = estimate(replace(run, evaluates=True, eval_batch_size=rows))
    assert found is not None, "it is as known as without evaluation"
    return found


rule = Rule(
    id="held-back-rows-unused",
    stage="lint",
    title="Held-back rows that nothing evaluates",
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
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "val_set_size: 0.05", fires=True),
        but("evals_per_epoch: 1", "metric_for_best_model: eval_loss", fires=True),
        but("evals_per_epoch: 1"),
        but("evals_per_epoch: 1", "num_epochs: 2", "metric_for_best_model: eval_loss"),
        but("eval_steps: 100"),
        but("eval_strategy: epoch"),
        but('eval_strategy: "no"'),
        but("evaluation_strategy: epoch"),
        but("early_stopping_patience: 3"),
        but("pretraining_dataset: a/b"),
        without("val_set_size"),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: Qwen/Qwen2.5-0.5B
                sequence_len: 8192
                micro_batch_size: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins: [axolotl.integrations.liger.LigerPlugin]
                liger_fused_linear_cross_entropy: true
                val_set_size: 0.05
            """,
            after="""
                base_model: Qwen/Qwen2.5-0.5B
                sequence_len: 8192
                micro_batch_size: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins: [axolotl.integrations.liger.LigerPlugin]
                liger_fused_linear_cross_entropy: true
                val_set_size: 0.05
                eval_strategy: epoch
                eval_batch_size: 1
            """,
        ),
        but("sequence_len: 32768", "micro_batch_size: 1", kept=True),
        but("sample_packing: true", kept=True),
        Example(
            gpus="1x rtx-4090",
            before="base_model: Qwen/Qwen2.5-7B\nval_set_size: 0.05",
            after="base_model: Qwen/Qwen2.5-7B\nval_set_size: 0.05\neval_strategy: epoch",
        ),
        Example(
            gpus="1x a100-80gb",
            before="base_model: Qwen/Qwen2.5-0.5B\nval_set_size: 0.05",
            after="base_model: Qwen/Qwen2.5-0.5B\nval_set_size: 0.05\neval_strategy: epoch",
        ),
    ),
)
