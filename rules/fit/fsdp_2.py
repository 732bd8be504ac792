"""Shard everything with PyTorch."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.engine.sharing import sharing


def applies(run: Run) -> bool:
    """Whether there are several GPUs without FSDP; preference training on a quantized base is refused."""
    refused = run.rl is not None and run.quantization is not None
    return run.fsdp is None and run.world_size > 1 and not refused


def edits(run: Run) -> RunEdits:
    """FSDP2, non-reentrant checkpoints, and torchao's 8-bit optimizer, since bitsandbytes has no kernels for it."""
    optimizer = {"optimizer": "adamw_torch_8bit"} if eight_bit(run) else {}
    checkpoints = {"reentrant": False} if run.activation_checkpointing and run.reentrant else {}
    return {"fsdp2": True} | optimizer | checkpoints


def eight_bit(run: Run) -> bool:
    """Whether the optimizer is one of bitsandbytes' 8-bit ones."""
    return "8bit" in run.optimizer and run.optimizer != "adamw_torch_8bit"


def label(before: Run, after: Run) -> str:
    """FSDP2, and what it takes the place of."""
    if before.zero is None:
        return "FSDP2"
    drops_masters = before.has_masters and not after.has_masters
    return "FSDP2 without DeepSpeed's fp32 masters" if drops_masters else "FSDP2 in place of DeepSpeed"


rule = Rule(
    id="fsdp-2",
    stage="fit",
    title="Shard weights, gradients and optimizer states across the GPUs (FSDP2)",
    label=label,
    when=applies,
    edits=edits,
    why="""
        FSDP2 keeps 1/N of everything. Unlike DeepSpeed it adds no fp32 master weights under axolotl: 8/N bytes a
        parameter with AdamW in bf16. In place of DeepSpeed the masters go: at a low learning rate most updates are then
        too small to change a bf16 weight.
    """,
    cost="An all-gather of each layer in forward and backward, in every micro-step; slow over PCIe or between nodes.",
    because=sharing("weights, gradients and states"),
    price="Each layer is gathered in forward and backward of every micro-step.",
    safe=lambda run: not eight_bit(run) and (run.zero is None or run.adapter is not None),
    source="https://arxiv.org/abs/2304.11277; axolotl/monkeypatch/accelerate/fsdp2.py:539-802@0.19.0",
    examples=(
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: true
                  offload_params: false
                  reshard_after_forward: true
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  state_dict_type: FULL_STATE_DICT
            """,
            memory="137.6 -> 37.3 GiB",
        ),
        only("base_model: Qwen/Qwen2.5-14B"),
        only("base_model: Qwen/Qwen2.5-14B", "rl: dpo", gpus="8x a100-80gb", fires=True),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                deepspeed: deepspeed_configs/zero1.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: true
                  offload_params: false
                  reshard_after_forward: true
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  state_dict_type: FULL_STATE_DICT
            """,
        ),
        but(
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "deepspeed"),
        ),
        but(
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_4bit: true",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "deepspeed"),
            fires=True,
        ),
        but(
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_4bit: true",
            "rl: dpo",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "deepspeed"),
        ),
        but(
            "base_model: nobody/knows-this",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "rl: dpo",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "deepspeed"),
        ),
    ),
)
