"""Keys that ask for another one, which says when to stop, save or evaluate."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only

STREAMS = ("streaming", "pretraining_dataset")


def finds(run: Run) -> Iterator[Hit]:
    """Each key whose companion is not there."""
    stream = next((key for key in STREAMS if run.config.get(key)), None)
    if stream and not run.config.get("max_steps"):
        said = f": {str(run.config.get(stream)).lower()}" if stream == "streaming" else ""
        yield Hit(
            stream,
            f"`{stream}{said}` without `max_steps` is refused by axolotl: a stream has no length to end at, or to"
            f" schedule the learning rate over; set `max_steps`{tokens_of(run)}",
        )
    if run.config.get("early_stopping_patience"):
        yield from stops_early(run)
    if run.config.get("do_bench_eval") and not (run.config.get("evals_per_epoch") or run.config.get("eval_steps")):
        yield Hit(
            "do_bench_eval",
            "`do_bench_eval: true` is refused by axolotl without `evals_per_epoch` or `eval_steps`, since the benchmark"
            " runs with the evaluation; set one of them",
        )


def tokens_of(run: Run) -> str:
    """``, a step of which reads 262,144 tokens``, where rows are full."""
    rows = run.global_batch_size if run.hardware is not None and run.sample_packing else None
    return f" (a step reads {rows * run.sequence_len:,} tokens)" if rows else ""


def stops_early(run: Run) -> Iterator[Hit]:
    """Early stopping looks at each evaluation, and goes back to a checkpoint that was saved with one."""
    saves, evaluates = run.config.get("save_steps"), run.config.get("eval_steps")
    said = f"`early_stopping_patience: {run.config.get('early_stopping_patience')}` is refused by axolotl"
    if not saves or not evaluates:
        missing = [key for key in ("eval_steps", "save_steps") if not run.config.get(key)]
        names = " and ".join(f"`{key}`" for key in missing)
        old = [key for key in ("evals_per_epoch", "saves_per_epoch") if run.config.get(key)]
        instead = f" in place of {' and '.join(f'`{key}`' for key in old)}" if old else ""
        yield Hit(
            "early_stopping_patience",
            f"{said} without {names}: it counts evaluations in steps; set {names}{instead}, saving at evaluations",
        )
    elif isinstance(saves, int | float) and isinstance(evaluates, int | float) and saves % evaluates:
        yield Hit(
            "early_stopping_patience",
            f"{said} where `eval_steps: {evaluates}` does not divide `save_steps: {saves}`: the best evaluation may lie"
            " between two checkpoints; make `save_steps` a multiple of `eval_steps`",
        )


rule = Rule(
    id="schedule-keys-missing",
    stage="lint",
    title="Keys that require another key, which is missing",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        A stream has no length, so the trainer needs to know when to end. Early stopping compares evaluations and
        keeps the checkpoint of the best, for which both must fall on the same steps. The benchmark is a part of the
        evaluation.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:366-372, 1480-1485, 1536-1542, 1766-1777@0.19.0",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "streaming: true", fires=True),
        but(
            "pretraining_dataset:\n  - path: HuggingFaceFW/fineweb-edu\n    type: pretrain",
            without=("streaming",),
            fires=True,
        ),
        but(
            "val_set_size: 0.05", "evals_per_epoch: 4", "early_stopping_patience: 3", without=("streaming",), fires=True
        ),
        but(
            "val_set_size: 0.05",
            "eval_steps: 100",
            "save_steps: 250",
            "early_stopping_patience: 3",
            without=("streaming",),
            fires=True,
        ),
        but("do_bench_eval: true", without=("streaming",), fires=True),
        but("max_steps: 1000"),
        but(
            "val_set_size: 0.05",
            "eval_steps: 100",
            "save_steps: 200",
            "early_stopping_patience: 3",
            without=("streaming",),
        ),
        but("do_bench_eval: true", "evals_per_epoch: 1", without=("streaming",)),
        but("early_stopping_patience: 3", "eval_steps: 10", without=("streaming",), fires=True),
        but("early_stopping_patience: 3", "save_steps: lint", without=("streaming",), fires=True),
        but(
            "eval_steps: x",
            "save_steps: 200",
            "early_stopping_patience: save_steps",
            "streaming: streaming",
            fires=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B", "early_stopping_patience: 3", 'save_steps: "100"', "eval_steps: 50"
        ),
    ),
)
