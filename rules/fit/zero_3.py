"""Shard the weights as well."""

from advisor import Example, Rule, Run, only
from advisor.engine.sharing import sharing
from advisor.run.axolotl.checkpointing import bears_zero_3, for_zero_3
from advisor.run.axolotl.released import loads_through_quantizer


def applies(run: Run) -> bool:
    """Whether DeepSpeed may be asked for stage 3, and there are GPUs to shard over.

    A checkpoint that goes through a quantizer, if only to be turned to bf16, is loaded whole: transformers leaves out
    zero.Init for it (modeling_utils.py, get_init_context@5.16.1).
    """
    possible = run.takes_deepspeed and run.zero_stage < 3 and run.quantization != "int8" and bears_zero_3(run)
    return possible and run.may_shard and not loads_through_quantizer(run)


def price(_before: Run, after: Run) -> str:
    """The traffic; of experts in few bits that nobody has tried it: docs/expert_quantization.qmd of axolotl@0.19.0."""
    if after.quantize_moe_experts:
        return "axolotl has not tested DeepSpeed with quantized experts: try a few steps."
    return "All weights are gathered twice in every micro-step, frozen ones too."


rule = Rule(
    id="zero-3",
    stage="fit",
    title="Shard weights, gradients and optimizer states across the GPUs (ZeRO-3)",
    label="ZeRO-3",
    when=applies,
    edits=lambda run: {"zero_stage": 3, **for_zero_3(run)},
    why="""
        ZeRO-3 keeps 1/N of everything and gathers each layer's weights when they are needed. `bf16` is written out as
        true, since "auto" would build the shards in fp32 while loading. 8-bit weights cannot be sharded by it.
    """,
    cost=(
        "All weights are gathered in the forward and again in the backward of every micro-step, frozen ones too; slow "
        "over PCIe or between nodes."
    ),
    because=sharing("weights, gradients and states"),
    price=price,
    safe=True,
    source="https://arxiv.org/abs/1910.02054; deepspeed/runtime/zero/stage3.py, partition_parameters.py@0.18.9",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-32B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-32B
                sequence_len: 2048
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: config.zero-3.json
            """,
            memory="305.2 -> 71.1 GiB",
        ),
        only("base_model: Qwen/Qwen2.5-32B", "deepspeed: deepspeed_configs/zero3_bf16.json", gpus="8x a100-80gb"),
        only("base_model: Qwen/Qwen2.5-32B", "deepspeed: deepspeed_configs/zero3_bf16.json", gpus="8x h200"),
        only(
            "base_model: Qwen/Qwen2.5-32B", "gradient_checkpointing: true", "unfrozen_parameters:\n  - model.layers.31"
        ),
        only("base_model: Qwen/Qwen2.5-32B", "optimizer: muon", gpus="8x a100-80gb"),
        only(
            "base_model: openai/gpt-oss-120b",
            "model_quantization_config: Mxfp4Config",
            "model_quantization_config_kwargs:\n  dequantize: true",
            gpus="8x a100-80gb",
        ),
        only(
            "base_model: Qwen/Qwen3-30B-A3B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_8bit: true",
            gpus="8x a100-80gb",
        ),
        only("base_model: nobody/knows-this", "optimizer: muon", gpus="8x a100-80gb"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "gradient_checkpointing: true",
            "unfrozen_parameters:\n  - model.layers.31",
            gpus="",
        ),
        only("base_model: nobody/knows-this"),
    ),
)
