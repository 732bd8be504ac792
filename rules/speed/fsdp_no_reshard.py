"""Weights that stay gathered from forward to backward."""

from advisor import Example, Rule, but, only

rule = Rule(
    id="fsdp-no-reshard",
    stage="speed",
    title="Keep FSDP2's weights gathered between forward and backward",
    label="weights gathered until backward",
    when=lambda run: run.fsdp is not None and run.fsdp.version == 2 and run.fsdp.reshard_after_forward,
    edits=lambda run: {"reshard_after_forward": False},
    why="""
        With resharding every layer's weights are gathered twice in each micro-step, in forward and again in backward.
        Without it once, as ZeRO-2 does.
    """,
    cost="2 bytes a parameter more on every GPU.",
    because="Each layer's weights are gathered once in a micro-step, not twice.",
    price="2 bytes a parameter more on every GPU.",
    safe=True,
    source="torch/distributed/fsdp/_fully_shard/_fully_shard.py@2.13.0; transformers/training_args.py:2811@5.16.1",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: false
            """,
        ),
        but(without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"), fixed=True),
        only(
            "base_model: nobody/knows-this",
            "fsdp_version: 1",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="8x a100-80gb",
        ),
        only("base_model: Qwen/Qwen2.5-0.5B", "sequence_len: 512", gpus="8x a100-80gb"),
    ),
)
