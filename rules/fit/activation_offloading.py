"""Keep layer inputs on the host."""

from advisor import Example, Rule, Run


def applies(run: Run) -> bool:
    """Whether layers are checkpointed and their inputs still lie on the GPU."""
    checkpointed = run.activation_checkpointing and run.activation_offloading is None
    free = run.rl != "ebft"
    return checkpointed and free and not (run.zero_stage == 3 and run.adapter is not None)


rule = Rule(
    id="activation-offloading",
    stage="fit",
    title="Move checkpointed layer inputs to the host",
    when=applies,
    edits=lambda run: {"activation_offloading": "saved-tensors" if run.adapter else "hidden-states"},
    why="""
        What checkpointing keeps grows with tokens x layers: 20 GiB for 16k tokens of a 70B model. The copies travel
        while other layers compute. In a full fine-tune only the hidden states go, with non-reentrant checkpoints.
    """,
    cost=(
        "Pinned host memory of the same size, and traffic over PCIe that is hidden only if a layer computes long "
        "enough."
    ),
    safe=True,
    source="axolotl/loaders/model.py:342-385, core/builders/base.py:589-618@0.19.0",
    examples=(
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 32768
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 32768
                micro_batch_size: 1
                gradient_checkpointing: true
                activation_offloading: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            memory="19.7 -> 12.9 GiB",
        ),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 32768
            """,
        ),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                deepspeed: deepspeed_configs/zero3.json
            """,
        ),
        Example(
            gpus="",
            before="""
                base_model: meta-llama/Llama-3.1-8B
            """,
        ),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_checkpointing: offload
            """,
        ),
        Example(
            gpus="",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                gradient_checkpointing: true
                rl: ebft
            """,
        ),
    ),
)
