"""Packed samples of a family that does not keep them apart."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, Set, but, only
from advisor.learning.packing import mixing_of
from advisor.run.axolotl.attention import without_scores

STREAMS = ("streaming", "pretraining_dataset")


def finds(run: Run) -> Iterator[Hit]:
    """Where something carries one sample of a row into the next. Streams are joined on purpose."""
    if not run.sample_packing or any(run.config.get(key) for key in STREAMS):
        return
    found = mixing_of(run)
    if found is None:
        return
    kernel = "flex" if without_scores(run) == "flex_attention" else "flash"
    instead = f" with `{run.attention}`; take {kernel} attention, or" if found.kernels else ";"
    message = f"`sample_packing: true`: {found.by} silently carries each sample of this family into the next{instead}"
    yield Hit("sample_packing", f"{message} turn packing off", (Set("sample_packing", False),))


rule = Rule(
    id="packing-mixes-samples",
    stage="lint",
    title="Packed samples of a family that does not keep them apart",
    finds=finds,
    level="warning",
    proof="accepts",
    safe=False,
    why="""
        axolotl marks samples by positions that restart. The attention of most families takes its mask from them; layers
        that carry a state do not, unless axolotl patches them, which it does for five hybrid families. Each family of
        the table was run with random weights: changing the first sample of a row changed the second one's logits.
    """,
    cost="Short rows are padded, so a step holds fewer tokens.",
    source="advisor/learning/packing.json; axolotl/loaders/patch_manager.py:535-604@0.19.0",
    examples=lambda: (
        only(
            "base_model: ai21labs/Jamba-v0.1",
            "sample_packing: true",
            "attn_implementation: flash_attention_2",
            fires=True,
        ),
        but("base_model: Qwen/Qwen3-8B"),
        but("base_model: nobody/knows-this"),
        but("sample_packing: false"),
        but("pretraining_dataset: allenai/c4"),
        but("base_model: openai/gpt-oss-20b", "attn_implementation: eager", fires=True),
        but("base_model: openai/gpt-oss-20b", "attn_implementation: kernels-community/flash-attn3"),
    ),
)
