"""Offloading needs more host memory than the node has."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, gib, only
from advisor.memory import estimate
from advisor.memory.host_loading import MERGED, ZEROS


def finds(run: Run) -> Iterator[Hit]:
    """Where the host memory that is stated or detected is smaller than what is offloaded."""
    found = estimate(run)
    if found is not None and run.hardware is not None and found.on_host == "does-not-fit":
        needed, there = gib(found.host_needed.low), run.hardware.host_words
        names = {term.name for term in found.host}
        if (remedy := next((REMEDIES[name] for name in REMEDIES if name in names), None)) is not None:
            yield Hit("", f"{needed} of host memory needed on each node to load the model, {there}; {remedy}")
            return
        pinned = gib(found.host_pinned)
        words = f"{needed} of host memory needed on each node ({pinned} pinned), {there}; offload less, or add nodes"
        yield Hit("", words)


REMEDIES = {
    ZEROS: (
        "with `cpu_ram_efficient_loading: true` each other process fills a model of zeros before FSDP cuts it; set it"
        " to false if a GPU holds the whole model, or shard by ZeRO-3, whose processes share the files"
    ),
    MERGED: (
        "each GPU's process stacks all experts of the checkpoint: name a copy that is stored stacked"
        " (`save_pretrained(..., save_original_format=False)`), or, with an adapter, load with FSDP2 and"
        " `cpu_ram_efficient_loading: true`"
    ),
}
"""By the term that asks for it."""

rule = Rule(
    id="host-memory-exceeded",
    stage="lint",
    title="A run that needs more host memory than the node has",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        ZeRO-Offload keeps 18 bytes a trained parameter on the host. A host that runs out kills the process: exit code
        -9, without a traceback. Under ZeRO-3 transformers 5 stacks the experts of a split checkpoint before it shards
        them: in each process, so that a node of eight GPUs holds them eight times. Under FSDP with efficient loading
        the first process stacks them, and the others of a full fine-tune fill a model of zeros each (from 5.6 on).
    """,
    safe=False,
    source=(
        "advisor/memory/host.py; advisor/memory/host_loading.py; transformers/integrations/deepspeed.py:386-428, "
        "transformers/modeling_utils.py:4790-4796@5.16.1; https://github.com/axolotl-ai-cloud/axolotl/issues/1439"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 2048",
            "gradient_checkpointing: true",
            "attn_implementation: flash_attention_2",
            "deepspeed: deepspeed_configs/zero2.json",
            gpus="8x a100-80gb host=64GiB",
            fires=True,
        ),
        but(gpus="8x a100-80gb host=1TiB"),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero2.json"),
        only(
            "base_model: Qwen/Qwen3-30B-A3B",
            "deepspeed: deepspeed_configs/zero3_bf16.json",
            gpus="8x h100-80gb host=256GiB",
            fires=True,
        ),
        but(gpus="8x h100-80gb host=1TiB"),
        but("base_model: nobody/knows-this", without=("sequence_len", "gradient_checkpointing", "attn_implementation")),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 2048",
            "gradient_checkpointing: true",
            "attn_implementation: flash_attention_2",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  cpu_ram_efficient_loading: true",
            gpus="8x h100-80gb host=64GiB",
            fires=True,
        ),
        but("adapter: lora", "lora_r: 8", "lora_alpha: 16", "lora_target_linear: true"),
    ),
)
