"""Master weights in half precision, under ZeRO."""

from advisor import Example, Rule, Run, only
from advisor.run import Zero


def applies(run: Run) -> bool:
    """Whether DeepSpeed's fp32 masters lie on the GPU, for weights that are trained whole in bf16."""
    match run.zero:
        case Zero(stage=1 | 2 | 3, master_bytes=4, offload_optimizer="gpu"):
            return run.precision == "bf16" and run.adapter is None
        case _:
            return False


rule = Rule(
    id="half-masters",
    stage="fit",
    title="Keep DeepSpeed's master weights and optimizer states in bf16",
    label="bf16 masters and optimizer states",
    when=applies,
    edits=lambda run: {"half_masters": True},
    why="""
        DeepSpeed keeps masters, gradients and both of Adam's moments in fp32: 16/N bytes a parameter under ZeRO-3. In
        bf16 they take 10/N.
    """,
    cost=(
        "The fp32 masters go: an update smaller than a bf16 step of the weight is lost, which at a learning rate of "
        "1e-5 is most of them. Needs DeepSpeed 0.18.9."
    ),
    because="Masters and both of Adam's moments take 2 bytes each instead of 4.",
    price="Updates smaller than a bf16 step of the weight are lost.",
    safe=False,
    source="deepspeed/runtime/config.py:986-990@0.18.9; deepspeed/runtime/base_optimizer.py:459-479@0.18.9",
    examples=lambda: (
        Example(
            gpus="4x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: ds.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 3}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}
            """,  # noqa: E501
            memory="65.7 -> 45.0 GiB",
        ),
        only("base_model: nobody/knows-this", gpus="8x a100-80gb"),
        only(
            "base_model: nobody/knows-this",
            "bf16: false",
            "fp16: true",
            "deepspeed: ds.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 2}, "fp16": {"enabled": true}}',
        ),
        only(
            "base_model: nobody/knows-this",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "deepspeed: ds.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
        ),
    ),
)
