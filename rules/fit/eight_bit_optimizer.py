"""Optimizer states in 8 bits."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.memory.deepspeed import embedding_elements

WIDE = frozenset({"adamw_torch", "adamw_torch_fused", "paged_adamw_32bit", "adamw_anyprecision", "optimi_adamw"})


BY_BITSANDBYTES: RunEdits = {"optimizer": "adamw_bnb_8bit"}
BY_TORCHAO: RunEdits = {"optimizer": "adamw_torch_8bit"}
LARGE = 0.15
"""Of a model's elements: embeddings whose states are worth 8 bits as well, which torchao gives them."""


def edits(run: Run) -> list[RunEdits]:
    """bitsandbytes, or torchao under FSDP2 and tensor parallelism, where bitsandbytes has no kernels.

    torchao also after bitsandbytes, which keeps an embedding's states in 32 bits: where that is much of the model.
    """
    if (run.fsdp is not None and run.fsdp.version == 2) or run.tensor_parallel_size > 1:
        return [BY_TORCHAO]
    large = run.model is not None and embedding_elements(run.model) >= LARGE * run.model.parameters
    return [BY_BITSANDBYTES, BY_TORCHAO] if large and run.sharding is None else [BY_BITSANDBYTES]


def applies(run: Run) -> bool:
    """Whether the states are wide and on the GPU; accelerate would replace an offloaded optimizer anyway."""
    offloaded = run.zero is not None and run.zero.offload_optimizer != "gpu"
    fsdp1_offload = run.fsdp is not None and run.fsdp.version == 1 and run.fsdp.offload_params
    return run.optimizer in WIDE and not offloaded and not fsdp1_offload


def because(_before: Run, after: Run) -> str:
    """What states take; bitsandbytes keeps those of embeddings wide."""
    if after.optimizer == "adamw_torch_8bit":
        return "States take 2 bytes a parameter instead of 4 or 8."
    return "But for embeddings, states take 2 bytes a parameter instead of 4 or 8."


rule = Rule(
    id="eight-bit-optimizer",
    stage="fit",
    title="Keep optimizer states in 8 bits",
    label=lambda _before, after: f"8-bit optimizer ({after.optimizer})",
    when=applies,
    edits=edits,
    why="""
        Block-wise 8-bit states take 2 bytes a parameter instead of 4 in bf16 and 8 in fp32. bitsandbytes keeps the
        states of embeddings in 32 bits, torchao does not.
    """,
    cost="Quantized moments: usually the same loss, at times less stable.",
    because=because,
    price="Quantized moments: usually the same loss, at times less stable.",
    safe=False,
    source="https://arxiv.org/abs/2110.02861; bitsandbytes/optim/optimizer.py:431-487",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 2048
                micro_batch_size: 1
                optimizer: adamw_torch_fused
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 2048
                micro_batch_size: 1
                optimizer: adamw_bnb_8bit
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="59.9 -> 48.1 GiB",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "optimizer: adamw_bnb_8bit"),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero1.json", fires=True),
        but("deepspeed: deepspeed_configs/zero2.json"),
        but("fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", without=("deepspeed",), fires=True),
        but("fsdp_config:\n  offload_params: true", without=("deepspeed",)),
        but("fsdp_version: 2", "fsdp_config:\n  offload_params: true", without=("deepspeed",), fires=True),
        but("fsdp_config:\n  offload_params: true", without=("deepspeed",), gpus=""),
    ),
)
