"""The model is not known, so there is no estimate."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run

WAYS = {
    "missing": "; give its config.json with `--model-config`, or install `axolotl-advisor[hub]` and drop `--offline`",
    "at hand": "; its config is at hand: `--trace` asks transformers (`axolotl-advisor[trace]`) and keeps the answer",
    "traced in vain": "",
}


def finds(run: Run) -> Iterator[Hit]:
    """Where neither a config.json nor the catalogue knows the model."""
    if run.model is None:
        ways = WAYS[run.model_config]
        yield Hit(
            "base_model",
            f"`base_model: {run.base_model}` is not known{run.model_reason}, so its memory is not estimated{ways}",
        )


rule = Rule(
    id="unknown-model",
    stage="lint",
    title="The model is not known, so there is no estimate",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        The advisor counts parameters and activations from a model's config. It looks into a local folder, the Hugging
        Face cache, and its own catalogue. Everything that needs no estimate is checked all the same.
    """,
    safe=False,
    source="advisor/models",
    examples=(
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: nobody/has-heard-of-this-3b
            """,
            fires=True,
        ),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
            """,
        ),
    ),
)
