"""A second partition of the weights within each node."""

from advisor import Example, Rule, Run, but, only
from advisor.hardware import Hardware
from advisor.run import Zero


def applies(run: Run) -> bool:
    """Whether ZeRO-3 gathers weights from several nodes of several GPUs, and keeps them on the GPU once.

    Next to a second model DeepSpeed stops, which hpz-with-second-model finds: no step adds an error.
    """
    match run.sharding, run.hardware:
        case Zero(stage=3, offload_params="gpu", secondary_partition_size=0 | 1), Hardware(
            nodes=nodes, gpus_per_node=each
        ):
            return nodes > 1 and each > 1
        case _:
            return False


rule = Rule(
    id="hpz",
    stage="speed",
    title="Keep a second partition of the weights within each node (hpZ)",
    label="hpZ: weights once more in each node",
    when=applies,
    edits=lambda run: {"secondary_partition_size": run.hardware.gpus_per_node} if run.hardware else {},
    why="""
        ZeRO-3 gathers every layer's weights over the network, twice in each micro-step. With
        `zero_hpz_partition_size` each node keeps them once more, in half precision: gathers stay on the node but for
        the first after each optimizer step, whose new weights the nodes do not have yet.
    """,
    cost="2 bytes a parameter more on the GPUs of each node, shared among them.",
    because="Weights are gathered within a node once it has them.",
    price="2 bytes a parameter more in each node, shared by its GPUs.",
    safe=True,
    source=(
        "https://arxiv.org/abs/2306.10209, section 3.2; deepspeed/runtime/zero/partition_parameters.py:1461-1465,"
        "1779-1824@0.18.9; deepspeed/runtime/zero/stage3.py:597-601,2417@0.18.9; deepspeed/utils/groups.py:698@0.18.9"
    ),
    examples=lambda: (
        Example(
            gpus="4n8x h100-80gb net=25Gb/s",
            before="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: config.hpz.json
            """,
        ),
        but(gpus="8x h100-80gb"),
        but(gpus="4n1x h100-80gb net=25Gb/s"),
        but("deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json", without=("deepspeed",)),
        but("deepspeed: deepspeed_configs/zero2.json", without=("deepspeed",)),
        but("rl: dpo"),
        but(fixed=True),
        only("base_model: Qwen/Qwen2.5-0.5B", "sequence_len: 512", gpus="4n8x h100-80gb net=25Gb/s"),
    ),
)
