"""Offloading needs more host memory than the node has."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, gib, only
from advisor.memory import estimate


def finds(run: Run) -> Iterator[Hit]:
    """Where the host memory that is stated or detected is smaller than what is offloaded."""
    found = estimate(run)
    if found is not None and run.hardware is not None and found.on_host == "does-not-fit":
        pinned = gib(found.host_pinned)
        yield Hit(
            "",
            f"{gib(found.host_needed.low)} of host memory needed on each node ({pinned} pinned),"
            f" {run.hardware.host_words}; offload less, or add nodes",
        )


rule = Rule(
    id="host-memory-exceeded",
    stage="lint",
    title="Offloading needs more host memory than the node has",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        ZeRO-Offload keeps 18 bytes a trained parameter on the host. A host that runs out kills the process: exit code
        -9, without a traceback.
    """,
    safe=False,
    source="advisor/memory/host.py; https://github.com/axolotl-ai-cloud/axolotl/issues/1439",
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
        but("base_model: nobody/knows-this", without=("sequence_len", "gradient_checkpointing", "attn_implementation")),
    ),
)
