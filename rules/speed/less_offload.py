"""Bring states back to the GPU."""

from advisor import Example, Rule, Run, RunEdits, only


def edits(run: Run) -> list[RunEdits]:
    """One of the two, or both; the more that comes back, the later in the list."""
    if run.fsdp is not None:
        return [{"fsdp_offload_params": False}]
    zero = run.zero
    assert zero is not None
    optimizer = {"offload_optimizer": "gpu"} if zero.offload_optimizer != "gpu" else {}
    params = {"offload_params": "gpu"} if zero.offload_params != "gpu" else {}
    return [part for part in (optimizer, params, optimizer | params if optimizer and params else {}) if part]


def applies(run: Run) -> bool:
    """Whether anything is offloaded."""
    by_zero = run.zero is not None and (run.zero.offload_optimizer != "gpu" or run.zero.offload_params != "gpu")
    return by_zero or (run.fsdp is not None and run.fsdp.offload_params)


def label(before: Run, after: Run) -> str:
    """What comes back."""
    states, weights = "optimizer states", "weights"
    if before.zero is not None and after.zero is not None:
        states = "" if before.zero.offload_optimizer == after.zero.offload_optimizer else states
        weights = "" if before.zero.offload_params == after.zero.offload_params else weights
    return f"{' and '.join(filter(None, (weights, states)))} on the GPU"


rule = Rule(
    id="less-offload",
    stage="speed",
    title="Bring offloaded states back to the GPU",
    label=label,
    when=applies,
    edits=edits,
    why="""
        There is room for them. Offloaded optimizer states are stepped by the CPU, and offloaded weights cross PCIe for
        every layer. axolotl's own zero2.json offloads the optimizer.
    """,
    cost=(
        "The memory that it takes; with the optimizer back on the GPU, the configured one runs again instead of "
        "DeepSpeed's CPU Adam."
    ),
    because="What lies on the GPU needs no step of the CPU and no traffic over PCIe.",
    price="GPU memory; states that come back use the configured optimizer.",
    safe=lambda run: run.optimizer in {"adamw_torch", "adamw_torch_fused"},
    source="https://arxiv.org/abs/2101.06840; axolotl deepspeed_configs/zero2.json@0.19.0",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                micro_batch_size: 1
                optimizer: adamw_torch_fused
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero2.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-3B
                sequence_len: 2048
                micro_batch_size: 1
                optimizer: adamw_torch_fused
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: config.less-offload.json
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "contiguous_gradients": true,
                    "overlap_comm": true
                  },
                  "bf16": {
                    "enabled": "auto"
                  },
                  "fp16": {
                    "enabled": "auto",
                    "auto_cast": false,
                    "loss_scale": 0,
                    "initial_scale_power": 32,
                    "loss_scale_window": 1000,
                    "hysteresis": 2,
                    "min_loss_scale": 1
                  },
                  "gradient_accumulation_steps": "auto",
                  "gradient_clipping": "auto",
                  "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto",
                  "wall_clock_breakdown": false
                }
            """,
            memory="12.3 -> 15.4 GiB",
        ),
        only("base_model: Qwen/Qwen2.5-3B", "deepspeed: deepspeed_configs/zero1.json", gpus="8x a100-80gb"),
        only("base_model: Qwen/Qwen2.5-3B", "fsdp_config:\n  offload_params: true", fires=True),
    ),
)
