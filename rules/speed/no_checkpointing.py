"""Keep activations instead of computing them again."""

from advisor import Example, Rule, Run, RunEdits, only, without
from advisor.memory.activations import checkpoints


def applies(run: Run) -> bool:
    """Whether the trainer or FSDP checkpoints, and not because rows are very long."""
    return checkpoints(run) and run.activation_offloading is None


def edits(run: Run) -> RunEdits:
    """Off, where it is on."""
    return {"activation_checkpointing" if run.activation_checkpointing else "fsdp_activation_checkpointing": False}


rule = Rule(
    id="no-checkpointing",
    stage="speed",
    title="Switch gradient checkpointing off",
    label="no gradient checkpointing",
    when=applies,
    edits=edits,
    why="""
        There is room for all activations, so nothing needs to be computed twice.
    """,
    cost="The room that it takes.",
    because="All activations are kept, so nothing is computed twice.",
    price="The room that all activations take.",
    safe=True,
    source="https://arxiv.org/abs/1604.06174; axolotl docs/choosing_method.qmd: checkpointing costs about 30 %",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 1024
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 1024
                micro_batch_size: 1
                gradient_checkpointing: false
                attn_implementation: flash_attention_2
            """,
            memory="8.3 -> 11.3 GiB",
        ),
        without("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
        Example(
            gpus="4x l40s",
            before="""
                base_model: Qwen/Qwen3-0.6B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                bf16: true
                fsdp_version: 2
                fsdp_config:
                  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  fsdp_activation_checkpointing: true
            """,
            after="""
                base_model: Qwen/Qwen3-0.6B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                bf16: true
                fsdp_version: 2
                fsdp_config:
                  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  fsdp_activation_checkpointing: false
            """,
        ),
        only(
            "base_model: Qwen/Qwen3-0.6B",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  activation_checkpointing: false",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "gradient_checkpointing: offload"),
    ),
)
