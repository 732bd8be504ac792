"""Shard everything with PyTorch."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.engine.sharing import sharing
from advisor.engine.states import loses_masters


def applies(run: Run) -> bool:
    """Whether there are several GPUs, without FSDP or with the fp32 weights of its first version.

    Preference training on a quantized base is refused.
    """
    refused = run.rl is not None and run.quantization is not None
    return (run.fsdp is None or upcasts(run)) and run.world_size > 1 and not refused


def upcasts(run: Run) -> bool:
    """Whether FSDP1, as `fsdp_config` writes it, trains all weights and so keeps them in fp32."""
    return run.fsdp_upcasts and run.adapter is None and bool(run.config.get("fsdp_config"))


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
    if before.fsdp is not None:
        return "FSDP2 without FSDP1's fp32 weights"
    if before.zero is None:
        return "FSDP2"
    return "FSDP2 without DeepSpeed's fp32 masters" if loses_masters(before, after) else "FSDP2 in place of DeepSpeed"


def price(before: Run, after: Run) -> str:
    """What is given up: precision where the masters go."""
    if loses_masters(before, after):
        return "Without fp32 masters small updates of weights are rounded away."
    return "Each layer is gathered in forward and backward of every micro-step."


def takes_masters(run: Run) -> bool:
    """Whether all weights are trained with masters that are gone then, if DeepSpeed's JSON does not say otherwise."""
    return run.adapter is None and (run.zero is not None or run.fsdp is not None)


rule = Rule(
    id="fsdp-2",
    stage="fit",
    title="Shard weights, gradients and optimizer states across the GPUs (FSDP2)",
    label=label,
    when=applies,
    edits=edits,
    why="""
        FSDP2 keeps 1/N of everything. Unlike DeepSpeed it adds no fp32 master weights under axolotl: 8/N bytes a
        parameter with AdamW in bf16. FSDP1 keeps trained weights, gradients and states in fp32: 16/N bytes. In place of
        DeepSpeed or FSDP1 the masters go: at a low learning rate most updates are then too small to change a bf16
        weight.
    """,
    cost="An all-gather of each layer in forward and backward, in every micro-step; slow over PCIe or between nodes.",
    because=sharing("weights, gradients and states"),
    price=price,
    safe=lambda run: not eight_bit(run) and not takes_masters(run),
    source="https://arxiv.org/abs/2304.11277; axolotl/monkeypatch/accelerate/fsdp2.py:539-802@0.19.0",
    examples=lambda: (
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
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                bf16: true
                fsdp:
                  - full_shard
                  - auto_wrap
                fsdp_config:
                  fsdp_version: 1
                  fsdp_sync_module_states: true
                  fsdp_use_orig_params: true
                  fsdp_reshard_after_forward: FULL_SHARD
                  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: Qwen/Qwen2.5-14B
                sequence_len: 2048
                micro_batch_size: 1
                attn_implementation: flash_attention_2
                bf16: true
                fsdp_config:
                  fsdp_reshard_after_forward: true
                  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
                fsdp_version: 2
            """,
        ),
        but("fsdp_version: 2", "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", without=("fsdp",)),
        but("bf16: false"),
        but("fsdp:\n  - full_shard\n  - auto_wrap", without=("fsdp_config",)),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"),
        but(
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_4bit: true",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "bf16", "fsdp", "fsdp_config"),
            fires=True,
        ),
        but(
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_4bit: true",
            "rl: dpo",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "bf16", "fsdp", "fsdp_config"),
        ),
        but(
            "base_model: nobody/knows-this",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "rl: dpo",
            without=("sequence_len", "micro_batch_size", "attn_implementation", "bf16", "fsdp", "fsdp_config"),
        ),
    ),
)
