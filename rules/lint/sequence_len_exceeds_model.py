"""Rows longer than the model's positions."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, is_mapping, only

SCALING = ("rope_scaling", "rope_parameters", "rope_theta", "max_position_embeddings")


def finds(run: Run) -> Iterator[Hit]:
    """Where ``sequence_len`` is above the limit in the model's config, and nothing stretches that."""
    limit = run.model.max_position_embeddings if run.model else None
    overrides = [run.config.get(key) for key in ("overrides_of_model_config", "model_config")]
    stretched = any(is_mapping(given) and any(key in given for key in SCALING) for given in overrides)
    if limit and run.sequence_len > limit and not stretched:
        yield Hit(
            "sequence_len",
            f"`sequence_len: {run.sequence_len}` is above the {limit} positions that the model was trained for, and"
            " axolotl only raises the number in its config; shorten it, or give `rope_scaling` under"
            " `overrides_of_model_config`",
        )


rule = Rule(
    id="sequence-len-exceeds-model",
    stage="lint",
    title="Rows longer than the model's positions",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        After the model is loaded axolotl writes `sequence_len` over a smaller `max_position_embeddings`, logs it and
        goes on. Nothing is scaled: rotary positions beyond the limit are new to the model, and a learned table of
        positions has no row for them.
    """,
    safe=False,
    source="axolotl/loaders/model.py:405-417@0.19.0",
    examples=lambda: (
        only("base_model: TinyLlama/TinyLlama-1.1B-Chat-v1.0", "sequence_len: 4096", fires=True),
        but("sequence_len: 2048"),
        but("""
                overrides_of_model_config:
                  rope_scaling:
                    rope_type: linear
                    factor: 2.0
            """),
        only("base_model: nobody/knows-this"),
        but("base_model: nobody/knows-this", "sequence_len: 10000000"),
    ),
)
