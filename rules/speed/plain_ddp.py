"""No sharding, for adapters alone."""

from advisor import Example, Rule, Run, only
from advisor.run import Zero


def applies(run: Run) -> bool:
    """Whether DeepSpeed shards what is small already, on the GPU: adapters in fp32."""
    match run.zero:
        case Zero(offload_optimizer="gpu", offload_params="gpu"):
            return run.lora is not None
        case _:
            return False


rule = Rule(
    id="plain-ddp",
    stage="speed",
    title="Train adapters without DeepSpeed",
    label="DDP without DeepSpeed",
    when=applies,
    edits=lambda run: {"no_deepspeed": True},
    why="""
        Adapters are so small that their gradients and states need no sharding, and they are in fp32 themselves. Plain
        data parallelism reduces them once a step, and gathers no weights.
    """,
    cost="The weights lie whole on every GPU, as under ZeRO-2.",
    because="Adapters need no sharding; their gradients are reduced once a step.",
    price="The weights lie whole on every GPU, as under ZeRO-2.",
    safe=True,
    source="https://docs.pytorch.org/docs/stable/notes/ddp.html; peft/tuners/tuners_utils.py@0.20.0: adapters in fp32",
    examples=lambda: (
        Example(
            gpus="4x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
        ),
        only(
            "base_model: Qwen/Qwen2.5-0.5B",
            "sequence_len: 512",
            "micro_batch_size: 1",
            "deepspeed: deepspeed_configs/zero2.json",
            gpus="4x a100-80gb",
        ),
        only("base_model: nobody/knows-this", "deepspeed: deepspeed_configs/zero1.json", gpus="4x a100-80gb"),
    ),
)
