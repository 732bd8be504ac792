"""KTO with one row at a time."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Rule, Run, Set, but

KEY = "micro_batch_size"


def finds(run: Run) -> Iterator[Hit]:
    """A batch of one, a missing key as well: KTO's KL term scores each prompt with the answer of its neighbour."""
    if run.rl != "kto" or run.micro_batch_size != 1:
        return
    half = run.gradient_accumulation_steps // 2
    edits: tuple[Change, ...] = (Set(KEY, 2, after="rl"), Set("gradient_accumulation_steps", half, after=KEY))
    also = f", and `gradient_accumulation_steps` to {half}" if keeps(run) else ", which doubles the global batch"
    said = f"`{KEY}: 1`" if run.config.has(KEY) else f"no `{KEY}`, so 1,"
    message = f"{said} with `rl: kto` stops the trainer: it pairs each prompt with the answer of another row"
    yield Hit(KEY if run.config.has(KEY) else "rl", f"{message}; set it to 2{also}", edits if keeps(run) else ())


def keeps(run: Run) -> bool:
    """Whether half the accumulation makes up for it."""
    return run.gradient_accumulation_steps % 2 == 0 and not run.config.get("batch_size")


rule = Rule(
    id="kto-single-row",
    stage="lint",
    title="KTO with one row at a time",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        KTO estimates a KL term from prompts with answers that belong to other rows of the micro batch. TRL refuses a
        micro batch of one once the model is loaded, whatever the accumulation is.
    """,
    cost="Twice the rows at once.",
    safe=True,
    source="trl/trainer/kto_trainer.py:798-809@1.9.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                rl: kto
                remove_unused_columns: false
                micro_batch_size: 1
                gradient_accumulation_steps: 8
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                rl: kto
                remove_unused_columns: false
                micro_batch_size: 2
                gradient_accumulation_steps: 4
            """,
        ),
        but(fixed=True),
        but("rl: dpo"),
        but("gradient_accumulation_steps: 3", kept=True),
        but("batch_size: 8", without=("gradient_accumulation_steps",), kept=True),
        but(without=("micro_batch_size", "gradient_accumulation_steps"), kept=True),
    ),
)
