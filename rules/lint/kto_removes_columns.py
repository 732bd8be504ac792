"""KTO without the columns that it reads."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but

KEY = "remove_unused_columns"


def finds(run: Run) -> Iterator[Hit]:
    """Anything but a plain false, a missing key as well."""
    if run.config.get("rl") == "kto" and run.config.get(KEY) is not False:
        at = KEY if run.config.has(KEY) else "rl"
        message = f"`rl: kto` without `{KEY}: false` is refused by axolotl: the trainer reads those columns"
        yield Hit(at, f"{message}; set `{KEY}: false`", (Set(KEY, False, after="rl"),))


rule = Rule(
    id="kto-removes-columns",
    stage="lint",
    title="KTO without the columns that it reads",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        transformers drops every column of the data that the model's forward does not name, unless configured not to.
        KTO's trainer reads prompts, completions and labels from such columns.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:711-720@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: kto
                learning_rate: 5e-7
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: kto
                remove_unused_columns: false
                learning_rate: 5e-7
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: kto
                remove_unused_columns: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: kto
                remove_unused_columns: false
            """,
        ),
        but(fixed=True),
        but("rl: orpo", without=("remove_unused_columns",)),
    ),
)
