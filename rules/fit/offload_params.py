"""Weights on the host."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.run.axolotl.checkpointing import bears_zero_3, for_zero_3


def edits(run: Run) -> RunEdits:
    """FSDP's own offload, where 8-bit optimizers have no CPU kernels, or ZeRO-3's."""
    if run.fsdp is not None:
        return {"fsdp_offload_params": True} | ({"optimizer": "adamw_torch"} if "8bit" in run.optimizer else {})
    return ({"zero_stage": 3, **for_zero_3(run)} if run.zero_stage < 3 else {}) | {"offload_params": "cpu"}


def applies(run: Run) -> bool:
    """Whether the weights are on the GPU and may leave it."""
    if run.fsdp is not None:
        return not run.fsdp.offload_params and (run.fsdp.version > 1 or not run.sync_each_batch)
    on_gpu = run.zero is None or run.zero.offload_params == "gpu"
    bears = run.zero_stage == 3 or bears_zero_3(run)
    return run.takes_deepspeed and on_gpu and run.quantization is None and bears


def label(before: Run, after: Run) -> str:
    """What goes to the host, with the stage and the optimizer where they are new."""
    if before.fsdp is not None:
        states = "optimizer" if after.optimizer == before.optimizer else "AdamW"
        return f"weights and {states} states on the host"
    return f"{'' if before.zero_stage == 3 else 'ZeRO-3, '}weights on the host"


rule = Rule(
    id="offload-params",
    stage="fit",
    title="Keep the weights on the host, and gather each layer from there",
    label=label,
    when=applies,
    edits=edits,
    why="""
        The GPU holds only the layers at work. Under FSDP the same key also moves gradients and optimizer states to the
        host.
    """,
    cost="Every layer crosses PCIe twice in each micro-step: slow unless the micro batch is large.",
    because="A GPU holds only the layers at work.",
    price="Each layer crosses PCIe twice in every micro-step: slow with few rows.",
    safe=lambda run: run.fsdp is None or run.optimizer in {"adamw_torch", "adamw_torch_fused"},
    source="https://arxiv.org/abs/2104.07857; deepspeed/runtime/zero/stage3.py:905-911@0.18.9",
    examples=lambda: (
        Example(
            gpus="2x rtx-4090 host=256GiB",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 2048
                micro_batch_size: 1
                optimizer: adamw_torch_fused
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: ds.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true}}, "bf16": {"enabled": true}}
            """,  # noqa: E501
            after_deepspeed="""
                {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu", "pin_memory": true}}, "bf16": {"enabled": true}}
            """,  # noqa: E501
            memory="16.7 -> 9.6 GiB",
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_params.json",
            gpus="2x rtx-4090",
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_params.json",
            gpus="8x a100-80gb",
        ),
        but(
            "unfrozen_parameters:\n  - model.layers.31",
            without=("sequence_len", "micro_batch_size", "optimizer", "attn_implementation"),
            gpus="1x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 3}}',
            fires=True,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "optimizer: muon", "deepspeed: ds.json", deepspeed="{}"),
        only("base_model: Qwen/Qwen2.5-7B", "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", fires=True),
        but(
            "deepspeed: fsdp_offload_params",
            without=("fsdp_config",),
            gpus="2x rtx-4090",
            deepspeed="{}",
            fires=True,
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "gradient_checkpointing: true",
            "selective_checkpointing: mlp",
            without=("fsdp_config",),
            gpus="",
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "deepspeed: zero.json",
            without=("fsdp_config",),
            gpus="",
            deepspeed='{"zero_optimization": {"stage": 3}}',
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "fsdp_version: 1",
            "fsdp_config: {offload_params: false}",
            gpus="2x rtx-4090",
            fires=True,
        ),
        but("accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}"),
        but(
            "accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}",
            "fsdp_version: 2",
            fires=True,
        ),
        but("fsdp_version: 2", "fsdp_config: {offload_params: true}"),
    ),
)
