"""Targets for dense or shared layers that PEFT moves to every expert."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.memory.weights import weights_of
from advisor.run.axolotl.expert_targets import taken_from_layers


def finds(run: Run) -> Iterator[Hit]:
    """Where linear layers of the model lose the adapters that they are named for."""
    lost, model = taken_from_layers(run), run.model
    if lost:
        assert model is not None, "targets are moved by what the model is made of"
        key = "lora_target_linear" if run.config.get("lora_target_linear") else "lora_target_modules"
        trained = weights_of(run, model).trained_elements
        yield Hit(
            key,
            f"`{key}` is silently moved to every expert: PEFT adapts the experts' stacks instead of"
            f" {', '.join(f'`{name}`' for name in lost)}, and trains {trained / 1e6:,.0f} M parameters; name the"
            " attention's layers alone, or the experts in `lora_target_parameters`",
            on_key=True,
        )


rule = Rule(
    id="adapters-on-experts",
    stage="lint",
    title="Adapters on all experts",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        The experts of a layer are one tensor each way in transformers 5. So that adapters of older versions load, PEFT
        takes a target that is called as their linear layers once were for all experts, and takes it from the dense
        layers and shared experts that still have linear layers of that name. The adapters then have many times the
        parameters, with gradients and optimizer states.
    """,
    safe=False,
    source="peft/utils/transformers_weight_conversion.py:402-482@0.20.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen3-Next-80B-A3B-Instruct",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, v_proj, shared_expert.gate_proj, shared_expert.up_proj]",
            fires=True,
        ),
        but(
            "base_model: zai-org/GLM-4.5-Air", "lora_target_linear: true", without=("lora_target_modules",), fires=True
        ),
        but("lora_target_modules: [q_proj, v_proj]"),
        but(stack={"peft": "0.18.1"}),
        but("lora_target_parameters: [mlp.experts.gate_up_proj]"),
        but("base_model: Qwen/Qwen3-30B-A3B", "lora_target_modules: [q_proj, v_proj, gate_proj, up_proj, down_proj]"),
        only("base_model: Qwen/Qwen3-Next-80B-A3B-Instruct"),
        only(
            "base_model: nobody/knows-this", "adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"
        ),
    ),
)
