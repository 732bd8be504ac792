"""Shard optimizer states and gradients across the GPUs."""

from advisor import Example, Rule, Run, only
from advisor.engine.sharing import sharing


def applies(run: Run) -> bool:
    """Whether DeepSpeed may be asked for stage 2, and there are GPUs to shard over."""
    return run.takes_deepspeed and run.zero_stage < 2 and run.may_shard


rule = Rule(
    id="zero-2",
    stage="fit",
    title="Shard optimizer states and gradients across the GPUs (ZeRO-2)",
    label="ZeRO-2",
    when=applies,
    edits=lambda run: {"zero_stage": 2},
    why="""
        ZeRO-2 keeps 1/N of optimizer states and gradients on each of N GPUs. DeepSpeed always adds fp32 master
        weights, which plain axolotl does not have in bf16: 2 + 14/N bytes a parameter instead of 8 (10 with DDP's
        buckets), so on one or two GPUs it can need more. The written bucket is a tenth of DeepSpeed's default.
    """,
    cost=(
        "Gradients are summed in every micro-step, which plain data parallelism does once a step, and the weights are "
        "gathered after it: k + 1/2 times the traffic with k steps of accumulation."
    ),
    because=sharing("gradients and optimizer states"),
    price="Gradients travel in every micro-step, weights once a step.",
    safe=True,
    source="https://arxiv.org/abs/1910.02054; deepspeed/runtime/zero/stage_1_and_2.py:1297-1321@0.18.9",
    examples=lambda: (
        Example(
            gpus="8x a100-40gb",
            before="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_accumulation_steps: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_accumulation_steps: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: config.zero-2.json
            """,
            memory="32.6 -> 14.7 GiB",
        ),
        only(
            "base_model: Qwen/Qwen2.5-3B",
            "fsdp_version: 2",
            "fsdp_config:\n  reshard_after_forward: true",
            gpus="8x a100-40gb",
        ),
        only("base_model: nobody/knows-this", "deepspeed: deepspeed_configs/zero2.json", gpus="8x a100-80gb"),
        only(
            "base_model: nobody/knows-this",
            "fsdp_version: 2",
            "fsdp_config:\n  reshard_after_forward: true",
            gpus="8x a100-80gb",
        ),
        only("base_model: nobody/knows-this"),
    ),
)
