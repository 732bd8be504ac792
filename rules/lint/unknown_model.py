"""The model is unknown, so there is no estimate."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only

TRACE = "its config was found: `--trace` traces it with transformers (`axolotl-advisor[trace]`) and caches the result"


def finds(run: Run) -> Iterator[Hit]:
    """Where neither a config.json nor the catalogue knows the model."""
    if run.model is None and run.base_model:
        message = f"`base_model: {run.base_model}` is unknown{run.model_reason}, so its memory is not estimated"
        yield Hit("base_model", "; ".join((message, *ways(run))).replace("?;", "?"))


def ways(run: Run) -> tuple[str, ...]:
    """What to do about it, the likeliest first."""
    match run.model_config:
        case "available":
            return (TRACE,)
        case "trace-failed":
            return ()
        case _:
            return run.model_hints


rule = Rule(
    id="unknown-model",
    stage="lint",
    title="The model is unknown, so there is no estimate",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        The advisor counts parameters and activations from a model's config. It looks into a local folder, the Hugging
        Face cache, and its own catalogue. Everything that needs no estimate is still checked.
    """,
    safe=False,
    source="advisor/models",
    examples=lambda: (
        only("base_model: nobody/has-heard-of-this-3b", gpus="1x rtx-4090", fires=True),
        but("base_model: meta-llama/Llama-3.1-8B"),
        only("sequence_len: 4096"),
    ),
)
