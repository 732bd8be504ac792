"""No ``sequence_len``."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, only

# Their trainers take lengths from `trl`, or from no prepared data.
OTHER_LENGTHS = frozenset({"grpo", "gdpo", "ebft"})
WHAT_HAPPENS = {"truncate": "cuts longer rows off there", "raise": "stops at the first longer row"}


def finds(run: Run) -> Iterator[Hit]:
    """Where the length is left to axolotl and rows are fitted to it."""
    if run.config.get("sequence_len") is not None or run.rl in OTHER_LENGTHS or run.config.get("skip_prepare_dataset"):
        return
    strategy = str(run.config.get("excess_length_strategy") or "drop").lower()
    happens = WHAT_HAPPENS.get(strategy, "drops every longer row")
    yield Hit(
        "base_model",
        f"`sequence_len` is not given: axolotl takes 512 tokens and {happens}; set it to the length of your data",
    )


rule = Rule(
    id="sequence-len-default",
    stage="lint",
    title="No `sequence_len`, so 512 tokens",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        512 tokens are a paragraph. Rows above `sequence_len` are dropped from the dataset unless
        `excess_length_strategy` is set, and a run may train on a small part of its data without a warning.
    """,
    safe=False,
    source="axolotl/utils/schemas/config.py:671-682, utils/data/utils.py:334-360@0.19.0",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 512"),
        only("base_model: meta-llama/Llama-3.1-8B", "rl: grpo"),
        only("base_model: meta-llama/Llama-3.1-8B", "skip_prepare_dataset: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "skip_prepare_dataset: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "rl: grpo"),
    ),
)
