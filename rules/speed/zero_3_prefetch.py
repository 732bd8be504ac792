"""Let ZeRO-3 gather ahead."""

from advisor import Example, Rule, Run, but, only
from advisor.run.deepspeed import live_for

LIVE = 1_000_000_000


def applies(run: Run) -> bool:
    """Whether ZeRO-3 runs on several GPUs with prefetching switched off, as in axolotl's shipped files."""
    zero = run.zero
    return zero is not None and zero.stage == 3 and run.world_size > 1 and zero.max_live_parameters == 0


rule = Rule(
    id="zero-3-prefetch",
    stage="speed",
    title="Let ZeRO-3 gather the next layers ahead",
    label="ZeRO-3 gathers ahead",
    when=applies,
    edits=lambda run: {"max_live_parameters": max(LIVE, live_for(run.model)), "max_reuse_distance": LIVE},
    why="""
        With max_live_parameters 0, as axolotl ships it, DeepSpeed's prefetch budget is never positive: every layer
        waits for its weights.
    """,
    cost="Up to 4 GiB of gathered weights.",
    because="Layers no longer wait for their weights.",
    price="Up to 4 GiB of gathered weights.",
    safe=True,
    source=(
        "deepspeed/runtime/zero/partitioned_param_coordinator.py@0.18.9; axolotl "
        "deepspeed_configs/zero3_bf16.json@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
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
                deepspeed: config.zero-3-prefetch.json
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 3,
                    "overlap_comm": true,
                    "contiguous_gradients": true,
                    "sub_group_size": 0,
                    "reduce_bucket_size": "auto",
                    "stage3_prefetch_bucket_size": "auto",
                    "stage3_param_persistence_threshold": "auto",
                    "max_live_parameters": 1000000000,
                    "max_reuse_distance": 1000000000,
                    "gather_16bit_weights_on_model_save": true
                  },
                  "bf16": {
                    "enabled": true
                  },
                  "gradient_accumulation_steps": "auto",
                  "gradient_clipping": "auto",
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto",
                  "wall_clock_breakdown": false
                }
            """,
            memory="33.6 -> 37.3 GiB",
        ),
        but(
            "deepspeed: zero.json",
            without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"),
            deepspeed='{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}',
        ),
        only("base_model: Qwen/Qwen2.5-14B", "deepspeed: deepspeed_configs/zero3_bf16.json", gpus=""),
        only(
            "base_model: Qwen/Qwen2.5-14B",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            "deepspeed: deepspeed_configs/zero3.json",
        ),
        only(
            "base_model: nobody/knows-this",
            "deepspeed: zero.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 2, "stage3_max_live_parameters": 0}}',
        ),
    ),
)
