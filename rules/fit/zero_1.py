"""Shard optimizer states across the GPUs."""

from advisor import Example, Rule, Run, only
from advisor.engine.sharing import sharing


def applies(run: Run) -> bool:
    """Whether DeepSpeed may be asked for stage 1, and there are GPUs to shard over."""
    return run.takes_deepspeed and run.zero_stage < 1 and run.may_shard


rule = Rule(
    id="zero-1",
    stage="fit",
    title="Shard optimizer states across the GPUs (ZeRO-1)",
    label="ZeRO-1",
    when=applies,
    edits=lambda run: {"zero_stage": 1},
    why="""
        ZeRO-1 keeps 1/N of the optimizer states and of the fp32 master weights that DeepSpeed adds on each of N GPUs:
        4 + 12/N bytes a parameter instead of 8. Gradients stay whole, and are reduced once a step, however many
        micro-steps are accumulated.
    """,
    cost="Half as much traffic again as plain data parallelism: the weights are gathered after each step.",
    because=sharing("optimizer states and master weights"),
    price="Half as much traffic again as plain data parallelism.",
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
                deepspeed: config.zero-1.json
            """,
            memory="32.6 -> 19.8 GiB",
        ),
        only("base_model: nobody/knows-this", "deepspeed: deepspeed_configs/zero1.json", gpus="8x a100-80gb"),
        only(
            "base_model: nobody/knows-this",
            "fsdp_version: 2",
            "fsdp_config:\n  reshard_after_forward: true",
            gpus="8x a100-80gb",
        ),
        only("base_model: nobody/knows-this"),
    ),
)
