"""Layer inputs back to the GPU."""

from advisor import Example, Rule, but

rule = Rule(
    id="no-activation-offloading",
    stage="speed",
    title="Keep checkpointed layer inputs on the GPU",
    label="layer inputs on the GPU",
    when=lambda run: run.activation_offloading is not None,
    edits=lambda run: {"activation_offloading": None},
    why="""
        There is room for them. On the host they cross PCIe twice in each micro-step.
    """,
    cost="What checkpointing keeps lies on the GPU again.",
    because="Layer inputs no longer cross PCIe twice in each micro-step.",
    price="What checkpointing keeps lies on the GPU again.",
    safe=True,
    source="axolotl/loaders/model.py:342-385, core/builders/base.py:589-618@0.19.0",
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
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                activation_offloading: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
        ),
        but(without=("sequence_len", "micro_batch_size", "attn_implementation"), fixed=True),
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: Qwen/Qwen3-14B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: offload
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen3-14B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
        ),
    ),
)
