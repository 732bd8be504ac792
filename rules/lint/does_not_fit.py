"""The run needs more memory than the GPU has."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, gib, only
from advisor.memory import estimate


def finds(run: Run) -> Iterator[Hit]:
    """The verdict, where even the low end of what is needed is too much."""
    found = estimate(run)
    if found is not None and run.hardware is not None and found.on_gpu == "does-not-fit":
        each, have = ("each of ", "have") if run.world_size > 1 else ("", "has")
        yield Hit(
            "",
            f"needs {gib(found.needed.high)} on {each}{run.hardware.title}, which {have} {gib(found.usable)} usable"
            f"{found.grounds}; peaks in the {found.peak_phase}",
        )


rule = Rule(
    id="does-not-fit",
    stage="lint",
    title="The run needs more memory than the GPU has",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        Even the low end of the estimate is above what torch can use on this card: the run would stop with an
        out-of-memory error. The plan below is the shortest that the flowchart has.
    """,
    cost="",
    safe=False,
    source="advisor/memory: phases of terms, each with its own source; `advisor estimate --ledger` prints them",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 2048", gpus="1x rtx-4090", fires=True),
        but(
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "gradient_checkpointing: true",
            gpus="1x a100-80gb",
        ),
        only("base_model: nobody/knows-this"),
    ),
)
