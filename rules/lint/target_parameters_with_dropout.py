"""Dropout with LoRA on single parameters."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only, without

KEY = "lora_dropout"


def finds(run: Run) -> Iterator[Hit]:
    """Any dropout with ``lora_target_parameters``."""
    if run.lora is not None and run.config.get("lora_target_parameters") and run.lora.dropout:
        message = (
            f"`{KEY}: {run.config.get(KEY)}` with `lora_target_parameters` is refused by axolotl: PEFT has no dropout"
            " for parameters; set it to 0"
        )
        yield Hit(KEY, message, (Set(KEY, 0),))


rule = Rule(
    id="target-parameters-with-dropout",
    stage="lint",
    title="Dropout with LoRA on single parameters",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        An adapter on a parameter, such as stacked experts, changes the weight and not the layer's output, so that
        there is no input to drop from. PEFT raises for it, and axolotl before it.
    """,
    cost="No dropout for the adapters of the modules either.",
    safe=False,
    source="axolotl/utils/schemas/peft.py:240-251@0.19.0; peft/tuners/lora/layer.py:2337-2340@0.20.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_dropout: 0.05
                lora_target_parameters: [mlp.experts.gate_up_proj, mlp.experts.down_proj]
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_dropout: 0
                lora_target_parameters: [mlp.experts.gate_up_proj, mlp.experts.down_proj]
            """,
        ),
        without("lora_dropout"),
        but("lora_target_modules: [q_proj, v_proj]", without=("lora_target_parameters",)),
        only(
            "base_model: Qwen/Qwen3-30B-A3B",
            "lora_target_parameters:\n  - mlp.experts.gate_up_proj\n  - mlp.experts.down_proj",
        ),
    ),
)
