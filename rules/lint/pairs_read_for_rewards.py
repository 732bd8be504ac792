"""GRPO's rows are read as pairs of answers, which they are not."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, is_mapping, only
from advisor.schemas.entries import entries_of

METHODS = ("grpo", "gdpo")
OF_PAIRS = ("chat_template", "chatml", "llama3", "zephyr", "user_defined")
"""Modules of axolotl/prompt_strategies/dpo@0.19.0 that take `chosen` and `rejected` from each row."""
OF_TEXTS = ("alpaca", "completion", "input_output", "alpaca_chat", "metharme", "pretrain", "context_qa")
"""Ways of reading rows that are looked for there, and not found."""


def finds(run: Run) -> Iterator[Hit]:
    """Each dataset whose type is a name of axolotl's, or a format: a function of one's own is what is wanted."""
    for at, item in entries_of(run.config) if run.rl in METHODS else ():
        kind = item.get("type")
        name = "user_defined" if is_mapping(kind) else str(kind).split(".")[0]
        if name in OF_TEXTS:
            message = (
                f"`type: {kind}` is no way of reading rows under `rl: {run.rl}`: it risks that axolotl stops there"
            )
            yield Hit(f"{at}.type", f"{message}; name a function, `my_rewards.to_prompt`")
        elif name in OF_PAIRS:
            message = f"`type` under `rl: {run.rl}` reads pairs: it risks a KeyError 'chosen' at the first row without"
            yield Hit(f"{at}.type", f"{message}; name a function, `my_rewards.to_prompt`", on_key=True)


rule = Rule(
    id="pairs-read-for-rewards",
    stage="lint",
    title="GRPO's rows are read as pairs of answers",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        axolotl looks for the type among DPO's strategies, whatever `rl` says: they ask each row for `chosen` and
        `rejected`. A name that is not among them is a ValueError. Rows for GRPO have a `prompt`, which a function of
        one's own makes: `type: module.function`.
    """,
    source=(
        "axolotl/utils/data/rl.py:322-347@0.19.0; axolotl/prompt_strategies/dpo/chat_template.py:66-80@0.19.0; "
        "https://github.com/axolotl-ai-cloud/axolotl/issues/3269"
    ),
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "rl: grpo",
            "trl:\n  reward_funcs: [my_rewards.right_answer]",
            "datasets:\n  - path: someone/questions\n    type: chat_template",
            fires=True,
        ),
        but("datasets:\n  - path: someone/questions\n    type: alpaca", fires=True),
        but("datasets:\n  - path: someone/questions\n    type:\n      field_prompt: question", fires=True),
        but("datasets:\n  - path: someone/questions\n    type: my_rewards.to_prompt"),
        but("datasets:\n  - someone/questions"),
        but("datasets: someone/questions"),
        but("datasets:\n  - path: someone/questions"),
        but("rl: dpo"),
    ),
)
