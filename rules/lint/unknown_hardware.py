"""No hardware is stated, so there is no verdict."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Where no GPUs are stated."""
    if run.hardware is None:
        ways = (
            '`--gpus "8x a100-80gb"`, a comment `# advisor: gpus=8x a100-80gb` in the YAML, or `gpus` in advisor.toml'
        )
        yield Hit("base_model", f"no GPUs are stated, so there is no verdict; state them with {ways}")


rule = Rule(
    id="unknown-hardware",
    stage="lint",
    title="No hardware is stated, so there is no verdict",
    finds=finds,
    level="note",
    proof="read",
    why="""
        A config does not say where it will run. Linting needs no hardware; the estimate's verdict does.
    """,
    safe=False,
    source="advisor/hardware",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.1-8B", gpus="", fires=True),
        but(gpus="1x rtx-4090"),
    ),
)
