"""No DeepSpeed on one GPU, for weights that are trained whole."""

from advisor import Example, Rule, Run, but, only
from advisor.run import Zero


def applies(run: Run) -> bool:
    """Whether DeepSpeed shards nothing and sends nothing to the host: its masters and buckets only take room."""
    match run.zero:
        case Zero(offload_optimizer="gpu", offload_params="gpu"):
            return run.world_size == 1 and run.precision == "bf16" and run.adapter is None
        case _:
            return False


rule = Rule(
    id="without-deepspeed",
    stage="fit",
    title="Train on the one GPU without DeepSpeed",
    label="no DeepSpeed on one GPU",
    when=applies,
    edits=lambda run: {"no_deepspeed": True},
    why="""
        ZeRO divides by the number of GPUs, which is one. What is left of DeepSpeed is fp32 in place of bf16 for
        gradients and optimizer states, fp32 master weights, and buckets. Without it the optimizer works on the bf16
        weights themselves.
    """,
    cost=(
        "The fp32 masters go: an update smaller than a bf16 step of the weight is lost, which at a learning rate of "
        "1e-5 is most of them."
    ),
    because="ZeRO has nothing to shard on one GPU; its fp32 masters and gradients go.",
    price="Updates smaller than a bf16 step of the weight are lost.",
    safe=False,
    source=(
        "axolotl/utils/trainer.py:568-591@0.19.0; deepspeed/runtime/zero/stage_1_and_2.py:469-496@0.18.9; "
        "https://arxiv.org/abs/2010.06192"
    ),
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero1.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="156.1 -> 56.8 GiB",
        ),
        only("base_model: nobody/knows-this", "deepspeed: deepspeed_configs/zero1.json", gpus="2x a100-80gb"),
        only(
            "base_model: nobody/knows-this", "deepspeed: deepspeed_configs/zero1.json", gpus="1x a100-80gb", fires=True
        ),
        but("bf16: false", "fp16: true"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"),
        but("deepspeed: deepspeed_configs/zero2.json"),
        only("base_model: nobody/knows-this", gpus="1x a100-80gb"),
    ),
)
