"""A process reward model with adapters on every linear layer, its score among them."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, without


def finds(run: Run) -> Iterator[Hit]:
    """An adapter on all linears of a model that ends in a score for each token."""
    if run.classifier == "token" and run.lora is not None and run.is_on("lora_target_linear"):
        yield Hit(
            "lora_target_linear",
            "`lora_target_linear: true` with `process_reward_model` stops in PEFT: it adapts the score that PEFT also"
            " trains whole; name the layers in `lora_target_modules`",
        )


rule = Rule(
    id="process-reward-target-linear",
    stage="lint",
    title="Name the layers that a process reward model adapts",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        axolotl takes every linear layer but the vocabulary's head for a target, and so the score of a token
        classifier. PEFT trains a whole copy of that score for such a model, and refuses to copy a layer that already
        has an adapter.
    """,
    safe=True,
    source="peft/utils/other.py:351-353@0.20.0; axolotl/loaders/adapter.py:54-71,131-137@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                process_reward_model: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            fires=True,
        ),
        but("lora_target_modules: [q_proj, v_proj]", without=("lora_target_linear",)),
        but("reward_model: true", without=("process_reward_model",)),
        without("adapter", "lora_r", "lora_alpha"),
    ),
)
