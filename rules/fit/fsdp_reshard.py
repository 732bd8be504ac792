"""Free gathered weights after forward."""

from advisor import Example, Rule, but, only

rule = Rule(
    id="fsdp-reshard",
    stage="fit",
    title="Free a layer's gathered weights after its forward",
    label="gathered weights freed after forward",
    when=lambda run: run.fsdp is not None and not run.fsdp.reshard_after_forward,
    edits=lambda run: {"reshard_after_forward": True},
    why="""
        Without resharding every layer's weights stay gathered from forward to backward, 2 bytes a parameter on every
        GPU, which is what ZeRO-2 does. With it they are gathered again.
    """,
    cost="One more all-gather of the weights in each micro-step.",
    because="No layer's weights stay gathered from forward to backward.",
    price="One more all-gather of the weights in each micro-step.",
    safe=True,
    source="torch/distributed/fsdp/_fully_shard; transformers/training_args.py:2811@5.16.1",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-32B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: false
            """,
            after="""
                base_model: Qwen/Qwen2.5-32B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  reshard_after_forward: true
            """,
            memory="89.1 -> 68.7 GiB",
        ),
        but(
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
        ),
        only("base_model: Qwen/Qwen2.5-32B"),
    ),
)
