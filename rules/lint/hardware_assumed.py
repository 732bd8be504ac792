"""The name of the hardware leaves open which card it is."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run


def finds(run: Run) -> Iterator[Hit]:
    """Where the name has more than one reading."""
    if run.hardware is not None and run.hardware.assumed:
        yield Hit("base_model", f"{run.hardware.assumed} ({run.hardware.source})")


rule = Rule(
    id="hardware-assumed",
    stage="lint",
    title="The name of the hardware leaves open which card it is",
    finds=finds,
    level="note",
    proof="read",
    why="""
        `a100` is sold with 40 and with 80 GB, `v100` with 16 and 32. The most common one is taken; a verdict for the
        wrong one is worth nothing, so name the size.
    """,
    safe=False,
    source="advisor/hardware/catalogue.py",
    examples=(
        Example(
            gpus="8x a100",
            before="""
                base_model: meta-llama/Llama-3.1-8B
            """,
            fires=True,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
            """,
        ),
        Example(
            gpus="",
            before="""
                base_model: meta-llama/Llama-3.1-8B
            """,
        ),
    ),
)
