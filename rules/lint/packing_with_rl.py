"""Sample packing in preference or reinforcement training."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only


def finds(run: Run) -> Iterator[Hit]:
    """``sample_packing`` with any ``rl``; KTO alone minds that of the evaluation too."""
    rl = run.config.get("rl")
    if not rl:
        return
    keys = ("sample_packing", "eval_sample_packing") if rl == "kto" else ("sample_packing",)
    for key in keys:
        if run.config.get(key):
            yield Hit(
                key,
                f"`{key}` with `rl: {rl}` is refused by axolotl: its trainers work on prompts and answers, not on"
                " packed rows; set it to `false`",
                (Set(key, False),),
            )


rule = Rule(
    id="packing-with-rl",
    stage="lint",
    title="Sample packing in preference or reinforcement training",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Each loss of `rl` compares whole answers, so a row must hold one of them. axolotl stops before anything is
        loaded.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:704-720@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: dpo
                sample_packing: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: dpo
                sample_packing: false
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: kto
                remove_unused_columns: false
                eval_sample_packing: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: kto
                remove_unused_columns: false
                eval_sample_packing: false
            """,
        ),
        but("rl: dpo", "sample_packing: false", without=("remove_unused_columns",)),
        only("base_model: Qwen/Qwen2.5-7B", "sample_packing: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "sample_packing: true"),
    ),
)
