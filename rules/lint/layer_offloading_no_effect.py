"""Layers are to be offloaded, and nothing in them can be."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, only, without


def finds(run: Run) -> Iterator[Hit]:
    """All weights are trained, or the trainer is one of TRL's."""
    if run.config.get("layer_offloading") is not True:
        return
    reason = reason_of(run)
    if reason:
        yield Hit(
            "layer_offloading",
            f"`layer_offloading: true` has no effect: {reason}; remove it",
            edits=(Remove("layer_offloading"),),
        )


def reason_of(run: Run) -> str:
    """Why nothing is offloaded, as a clause."""
    if run.rl is not None or run.config.get("reward_model") or run.config.get("process_reward_model"):
        return "axolotl's trainers for preference and reward training ignore it"
    spectrum = "spectrum" in str(run.config.get("plugins")).lower()
    freezes = run.unfrozen_parameters or run.config.get("lisa_step_interval") or run.config.get("adapter")
    if not freezes and not spectrum:
        return "it streams frozen weights alone, and a full fine-tune has none"
    return ""


rule = Rule(
    id="layer-offloading-no-effect",
    stage="lint",
    title="Layers are to be offloaded, and nothing in them can be",
    finds=finds,
    level="warning",
    proof="accepts",
    safe=True,
    why="""
        `layer_offloading` keeps the frozen weights of each decoder layer on the host and brings them to the GPU one
        layer ahead. What is trained stays on the GPU, so a full fine-tune gains nothing. It is a mixin of axolotl's own
        trainer, and not of those that it builds on TRL's.
    """,
    source="axolotl/core/trainers/mixins/layer_offloading.py:51-53, 280-299@0.19.0;"
    " axolotl/core/trainers/base.py:73-83@0.19.0; axolotl/core/trainers/dpo/trainer.py:26-33@0.19.0;"
    " axolotl/core/trainers/trl.py:13-80@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_checkpointing: true
                layer_offloading: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_checkpointing: true
            """,
        ),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                rl: dpo
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                layer_offloading: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                rl: dpo
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        without("rl"),
        but("reward_model: true", without=("rl",), fires=True),
        but("process_reward_model: true", without=("rl",), fires=True),
        only(
            "base_model: meta-llama/Llama-3.1-8B", "layer_offloading: true", "unfrozen_parameters:\n  - model.layers.31"
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "layer_offloading: true", "lisa_step_interval: 20"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "layer_offloading: true",
            "plugins:\n  - axolotl.integrations.spectrum.SpectrumPlugin",
        ),
    ),
)
