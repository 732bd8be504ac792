"""Shards within a node, replicas across nodes."""

from advisor import Example, Rule, Run, but, only
from advisor.hardware import Hardware
from advisor.run import Fsdp


def applies(run: Run) -> bool:
    """Whether FSDP2 shards over several nodes of several GPUs, and nothing else divides them."""
    sizes = (run.dp_replicate_size, run.tensor_parallel_size, run.context_parallel_size, run.expert_parallel_size)
    match run.sharding, run.hardware:
        case Fsdp(version=2), Hardware(nodes=nodes, gpus_per_node=each):
            return nodes > 1 and each > 1 and run.dp_shard_size is None and set(sizes) == {1}
        case _:
            return False


rule = Rule(
    id="hsdp",
    stage="speed",
    title="Shard within each node, and replicate over the nodes (HSDP)",
    label="HSDP: shards within a node",
    when=applies,
    edits=lambda run: (
        {"dp_shard_size": run.hardware.gpus_per_node, "dp_replicate_size": run.hardware.nodes} if run.hardware else {}
    ),
    why="""
        FSDP2 over all GPUs gathers every layer's weights over the network, twice in each micro-step. With shards over
        the GPUs of a node the gathers stay on the node; once a step the nodes sum the gradients, each GPU its shard.
        Both keys are written: accelerate stops where `dp_shard_size` stands alone.
    """,
    cost="Weights, gradients and optimizer states are divided by the GPUs of a node, no longer by all.",
    because="Weights are gathered within a node; the network carries gradients alone.",
    price="Weights, gradients and states are divided by the GPUs of a node alone.",
    safe=True,
    source=(
        "axolotl/monkeypatch/accelerate/fsdp2.py:494-512@0.19.0; accelerate/parallelism_config.py@1.13.0;"
        " torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py@2.13.0"
    ),
    examples=lambda: (
        Example(
            gpus="4n8x h100-80gb net=25Gb/s",
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
                  reshard_after_forward: true
                dp_shard_size: 8
                dp_replicate_size: 4
            """,
        ),
        but(without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"), fixed=True),
        but(gpus="8x h100-80gb"),
        but(gpus="4n1x h100-80gb net=25Gb/s"),
        but("dp_shard_size: 32"),
        but("tensor_parallel_size: 2"),
        but("dp_replicate_size: 32"),
        but("context_parallel_size: 32"),
        but("fsdp_version: 1"),
        only("base_model: Qwen/Qwen2.5-0.5B", "sequence_len: 512", gpus="4n8x h100-80gb net=25Gb/s"),
    ),
)
