"""Offloading needs more host memory than the node has."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, gib, only
from advisor.memory import estimate
from advisor.memory.host import MERGED


def finds(run: Run) -> Iterator[Hit]:
    """Where the host memory that is stated or detected is smaller than what is offloaded."""
    found = estimate(run)
    if found is not None and run.hardware is not None and found.on_host == "does-not-fit":
        needed, there = gib(found.host_needed.low), run.hardware.host_words
        if any(term.name == MERGED for term in found.host):
            yield Hit("", f"{needed} of host memory needed on each node to load the model, {there}; {LOAD_OTHERWISE}")
            return
        pinned = gib(found.host_pinned)
        words = f"{needed} of host memory needed on each node ({pinned} pinned), {there}; offload less, or add nodes"
        yield Hit("", words)


LOAD_OTHERWISE = (
    "each GPU's process stacks all experts of the checkpoint under ZeRO-3: name a copy that is stored stacked"
    " (`save_pretrained(..., save_original_format=False)`), or load with FSDP and `cpu_ram_efficient_loading: true`"
)

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
        them: in each process, so that a node of eight GPUs holds them eight times.
    """,
    safe=False,
    source="advisor/memory/host.py; transformers/integrations/deepspeed.py:386-428@5.16.1; https://github.com/axolotl-ai-cloud/axolotl/issues/1439",
    examples=(
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
    ),
)
