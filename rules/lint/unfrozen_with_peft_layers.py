"""Unfrozen parameters with an adapter on some layers alone."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, only, without


def finds(run: Run) -> Iterator[Hit]:
    """Where an adapter has both ``peft_layers_to_transform`` and ``unfrozen_parameters``."""
    config = run.config
    if config.get("adapter") and config.get("peft_layers_to_transform") and config.get("unfrozen_parameters"):
        message = "`unfrozen_parameters` with `peft_layers_to_transform`: axolotl stops; keep one of them"
        yield Hit("unfrozen_parameters", message, on_key=True)


rule = Rule(
    id="unfrozen-with-peft-layers",
    stage="lint",
    title="Unfrozen parameters with an adapter on some layers alone",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Both say which part of the model is trained: one unfreezes its own weights, the other chooses the layers that
        get an adapter.
    """,
    safe=False,
    source="axolotl/utils/schemas/validation.py:610-621@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                peft_layers_to_transform: [30, 31]
                unfrozen_parameters: ["lm_head.*"]
            """,
            fires=True,
        ),
        without("unfrozen_parameters"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "peft_layers_to_transform:\n  - 30\n  - 31",
            "unfrozen_parameters:\n  - lm_head.*",
        ),
        but("unfrozen_parameters:\n  - lm_head.*", without=("peft_layers_to_transform",)),
        but("unfrozen_parameters:\n  - model.layers.31", without=("peft_layers_to_transform",)),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "unfrozen_parameters:\n  - model.layers.31",
            "peft_layers_to_transform:\n  - 0",
        ),
    ),
)
