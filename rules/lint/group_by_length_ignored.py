"""Rows grouped by length, which packing never asks for."""

from collections.abc import Iterator

from advisor import Hit, Remove, Rule, Run, but, only, without

KEY = "group_by_length"


def finds(run: Run) -> Iterator[Hit]:
    """Both at once."""
    if run.is_on(KEY) and run.sample_packing and not run.config.get("pretraining_dataset"):
        message = (
            f"`{KEY}: true` has no effect next to `sample_packing`, which takes rows in random order and fills bins"
        )
        yield Hit(KEY, f"{message}; remove it", (Remove(KEY),))


rule = Rule(
    id="group-by-length-ignored",
    stage="lint",
    title="Rows grouped by length, which packing never asks for",
    finds=finds,
    level="note",
    proof="accepts",
    safe=True,
    why="""
        With packing axolotl makes its own sampler, over a random order; the trainer's, which would group rows, is asked
        only without it. Packed rows have one length anyway.
    """,
    source="axolotl/core/trainers/base.py:199-216@0.19.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen3-8B",
            f"{KEY}: true",
            "sample_packing: true",
            "attn_implementation: flash_attention_2",
            fires=True,
        ),
        but(f"{KEY}: false"),
        but("sample_packing: false"),
        but("pretraining_dataset: allenai/c4", "max_steps: 10"),
        without(KEY),
    ),
)
