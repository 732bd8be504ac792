"""Less sharding, less traffic."""

from advisor import Example, Rule, only

rule = Rule(
    id="lower-zero-stage",
    stage="speed",
    title="Step down to a lower ZeRO stage",
    label=lambda before, after: f"ZeRO-{before.zero_stage} -> ZeRO-{after.zero_stage}",
    when=lambda run: run.zero is not None and run.zero.offload_params == "gpu",
    edits=lambda run: [{"zero_stage": stage} for stage in (2, 1) if stage < run.zero_stage],
    why="""
        ZeRO-3 gathers every layer's weights in forward and again in backward, in every micro-step; ZeRO-2 keeps them
        whole. It still sums gradients in every micro-step; ZeRO-1 keeps those whole too, and sums them once a step.
    """,
    cost="2 bytes a parameter more on every GPU for each stage.",
    because="Less is gathered or summed in every micro-step.",
    price="2 bytes a parameter more on every GPU for each stage.",
    safe=True,
    source="https://arxiv.org/abs/1910.02054, section 7",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: config.lower-zero-stage.json
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 1,
                    "overlap_comm": true,
                    "contiguous_gradients": true,
                    "sub_group_size": 0,
                    "reduce_bucket_size": "auto",
                    "max_live_parameters": 0,
                    "max_reuse_distance": 0,
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
            memory="10.2 -> 17.7 GiB",
        ),
        only("base_model: Qwen/Qwen2.5-3B", "deepspeed: deepspeed_configs/zero1.json", gpus="8x a100-80gb"),
        only("base_model: Qwen/Qwen2.5-3B", "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json"),
    ),
)
