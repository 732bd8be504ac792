"""DPO without padding, which TRL has switched off."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but
from advisor.run.axolotl.preference import BY_DPO

KEY = "dpo_padding_free"


def finds(run: Run) -> Iterator[Hit]:
    """The key on."""
    if run.rl in BY_DPO and run.is_on(KEY):
        yield Hit(KEY, f"`{KEY}: true` has no effect: TRL has switched it off, and rows are padded; remove it", EDIT)


EDIT = (Remove(KEY),)
rule = Rule(
    id="dpo-padding-free-ignored",
    stage="lint",
    title="DPO without padding, which TRL has switched off",
    finds=finds,
    level="note",
    proof="read",
    why="""
        TRL's DPO trainer warns that it is unavailable since a refactoring, and falls back to padding: rows cost the
        time and the memory of the longest in the batch.
    """,
    safe=True,
    source="trl/trainer/dpo_trainer.py:706-713@1.9.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.2-3B-Instruct
                rl: dpo
                dpo_padding_free: true
            """,
            after="""
                base_model: meta-llama/Llama-3.2-3B-Instruct
                rl: dpo
            """,
        ),
        but("dpo_padding_free: false"),
        but("rl: orpo"),
    ),
)
