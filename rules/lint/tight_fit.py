"""The run may or may not fit."""

from collections.abc import Iterator

from advisor import Estimate, Hit, Rule, Run, but, gib, only
from advisor.hardware import Hardware
from advisor.memory import estimate

DECIDES = "how pinned blocks are rounded up, and what a paged optimizer moves there, decide whether it fails"


def finds(run: Run) -> Iterator[Hit]:
    """The verdict, where the range of what is needed holds what is usable."""
    found = estimate(run)
    if found is not None and run.hardware is not None and found.verdict == "tight":
        said = ((found.on_gpu, on_gpu(found, run.hardware)), (found.on_host, on_host(found, run.hardware)))
        yield Hit("", "; ".join(words for verdict, words in said if verdict == "tight"))


def on_gpu(found: Estimate, hardware: Hardware) -> str:
    """What decides on the GPU."""
    each, have = ("each of ", "have") if hardware.world_size > 1 else ("", "has")
    return (
        f"needs up to {gib(found.needed.high)} on {each}{hardware.title}, which {have} {gib(found.usable)} usable"
        f"{found.grounds}: fragmentation decides whether it fails; peaks in the {found.peak_phase}"
    )


def on_host(found: Estimate, hardware: Hardware) -> str:
    """What decides on the host."""
    needed = f"{gib(found.host_needed.low)} to {gib(found.host_needed.high)}"
    return f"{needed} of host memory needed on each node, {hardware.host_words}: {DECIDES}"


rule = Rule(
    id="tight-fit",
    stage="lint",
    title="The run may or may not fit",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        What is usable lies inside the range of what is needed. Fragmentation decides, and it differs from batch to
        batch; on the host, how pinned blocks are rounded up and which pages a paged optimizer moves there. Steps that
        make it fit and train the same are shown where there are such; else shorten `sequence_len`, or use a card with
        more memory.
    """,
    safe=False,
    source="advisor/memory/ranges.py",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 2048",
            "micro_batch_size: 1",
            "gradient_checkpointing: true",
            "attn_implementation: flash_attention_2",
            "optimizer: paged_adamw_8bit",
            gpus="1x a100-80gb host=8GiB",
            fires=True,
        ),
        but(
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "sequence_len: 9728",
            without=("optimizer",),
            gpus="1x rtx-4090",
            fires=True,
        ),
        but(
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            without=("micro_batch_size", "attn_implementation", "optimizer"),
            gpus="1x a100-80gb",
        ),
        only("base_model: nobody/knows-this"),
    ),
)
