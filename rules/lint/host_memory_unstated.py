"""Offloading needs more host memory than machines with such cards commonly have, and nobody said what there is."""

from collections.abc import Iterator

from advisor import GIB, Hit, Rule, Run, but, gib, only
from advisor.memory import estimate


def finds(run: Run) -> Iterator[Hit]:
    """Where the host's memory is neither stated nor detected, and what is common is smaller than what is offloaded."""
    found = estimate(run)
    hardware = run.hardware
    if found is None or hardware is None or hardware.host_bytes is not None:
        return
    if found.host_peak > hardware.common_host_bytes:
        pinned = gib(found.host_pinned)
        yield Hit(
            "",
            f"{gib(found.host_peak)} of host memory needed on each node ({pinned} pinned), {hardware.host_words};"
            f' if yours has it, state it (`--gpus "{hardware.spec} host={-(-found.host_peak // GIB)}GiB"`);'
            f" else offload less",
        )


rule = Rule(
    id="host-memory-unstated",
    stage="lint",
    title="Offloading needs much host memory",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Whether the run fits is decided on the host too, and its memory is not known. More is needed than machines with
        these cards commonly have: a host that runs out kills the process, exit code -9, without a traceback.
    """,
    safe=False,
    source="advisor/memory/host.py; `host_gib_per_gpu` in advisor/hardware/gpus.json",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 2048",
            "gradient_checkpointing: true",
            "attn_implementation: flash_attention_2",
            "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json",
            gpus="1x rtx-4090",
            fires=True,
        ),
        but(gpus="1x rtx-4090 host=128GiB"),
        but(gpus="8x rtx-4090"),
        but("base_model: nobody/knows-this", without=("sequence_len", "gradient_checkpointing", "attn_implementation")),
    ),
)
