"""Activations are to be offloaded, and layers are not checkpointed."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only

MODES = (True, "legacy", "disk", "hidden_states")


def finds(run: Run) -> Iterator[Hit]:
    """axolotl refuses the one without the other."""
    value = run.config.get("activation_offloading")
    if value in MODES and not run.config.get("gradient_checkpointing"):
        written = "true" if value is True else value
        yield Hit(
            "activation_offloading",
            f"`activation_offloading: {written}` without `gradient_checkpointing` is refused by axolotl; set"
            " `gradient_checkpointing: true`",
            edits=(Set("gradient_checkpointing", True),),
        )


rule = Rule(
    id="activation-offloading-without-checkpointing",
    stage="lint",
    title="Activations are to be offloaded, and layers are not checkpointed",
    finds=finds,
    level="error",
    proof="rejects",
    safe=True,
    why="""
        axolotl builds offloading on `gradient_checkpointing`: with it, only what a checkpoint keeps has to travel. It
        refuses the config before anything is loaded.
    """,
    source="axolotl/utils/schemas/validation.py:1595-1599@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                activation_offloading: true
                gradient_checkpointing: false
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                activation_offloading: true
                gradient_checkpointing: true
            """,
        ),
        but(fixed=True),
        only("base_model: meta-llama/Llama-3.1-8B", "activation_offloading: false"),
    ),
)
