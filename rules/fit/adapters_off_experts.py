"""Leave adapters off the experts that PEFT moves them to."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.memory.weights import weights_of
from advisor.run.axolotl.expert_targets import left_by_name, taken_from_layers


def applies(run: Run) -> bool:
    """Whether targets are moved to the experts' stacks; where no others are left, the edit is refused."""
    return bool(taken_from_layers(run))


def edits(run: Run) -> RunEdits:
    """The layers whose adapters stay where they are named."""
    return {"lora_targets": left_by_name(run)}


def label(before: Run, after: Run) -> str:
    """How many parameters are trained, before and after."""
    counts = (weights_of(run, run.model).trained_elements / 1e6 for run in (before, after) if run.model is not None)
    return f"no adapters on experts: {' -> '.join(f'{count:,.0f}' for count in counts)} M"


rule = Rule(
    id="adapters-off-experts",
    stage="fit",
    title="Leave the adapters off the experts",
    label=label,
    when=applies,
    edits=edits,
    why="""
        PEFT takes a target that is called as the experts' linear layers once were for all experts, and from the dense
        layers of that name. The adapters of all experts are many times those of the attention, and need weights,
        gradients and optimizer states of their own. Without them the attention is adapted alone.
    """,
    cost="Experts and dense layers are not adapted: less can be learned than with adapters on all layers.",
    because="PEFT moves the targets to every expert: most of what is trained.",
    price="Experts and dense layers learn nothing.",
    safe=False,
    source="peft/utils/transformers_weight_conversion.py:402-482@0.20.0; arXiv 2106.09685, section 7.1",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: zai-org/GLM-4.5-Air
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_qkv_kernel: false
                lora_o_kernel: false
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: zai-org/GLM-4.5-Air
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules:
                  - q_proj
                  - k_proj
                  - v_proj
                  - o_proj
                lora_qkv_kernel: false
                lora_o_kernel: false
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="240.6 -> 203.8 GiB",
        ),
        but(without=("lora_target_linear",), fixed=True),
        but("lora_target_modules: [gate_proj, up_proj, down_proj]", without=("lora_target_linear",)),
        but("lora_target_parameters: [mlp.experts.gate_up_proj]"),
        but("base_model: Qwen/Qwen3-8B"),
        only("base_model: zai-org/GLM-4.5-Air"),
        only("base_model: nobody/knows-this", "adapter: lora", "lora_r: 16", "lora_target_linear: true"),
    ),
)
