"""Several datasets to stream, of which axolotl reads the first."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, is_list, only, without

PRETRAINING = "pretraining_dataset"


def finds(run: Run) -> Iterator[Hit]:
    """More than one entry: of what is pretrained on, or of what is packed as it comes."""
    packs_a_stream = run.is_on("streaming") and run.sample_packing
    key = PRETRAINING if run.config.get(PRETRAINING) else "datasets" if packs_a_stream else ""
    entries = run.config.get(key) if key else None
    if not is_list(entries) or len(entries) < 2:
        return
    others = len(entries) - 1
    rest = "the second is" if others == 1 else f"the other {others} are"
    remedy = "merge them into one, shuffled"
    yield Hit(f"{key}.1", f"`{key}` is streamed from its first entry alone: {rest} silently never read; {remedy}")


rule = Rule(
    id="streams-first-dataset-only",
    stage="lint",
    title="Datasets after the first are never streamed",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        axolotl takes a list of datasets to pretrain on, or to stream and pack, and reads its first entry: the others
        pass the schema, and nothing is said of them. A run on three corpora trains on one.
    """,
    source="axolotl/utils/data/sft.py:135-144,176-190@0.19.0",
    examples=lambda: (
        only(
            "base_model: HuggingFaceTB/SmolLM2-360M",
            "pretraining_dataset:\n  - path: allenai/c4\n  - path: a/b\n  - path: ./local",
            "max_steps: 1000",
            fires=True,
        ),
        but("pretraining_dataset:\n  - path: allenai/c4"),
        but("pretraining_dataset: allenai/c4"),
        but("pretraining_dataset:\n  - allenai/c4\n  - a/b", fires=True),
        without("pretraining_dataset"),
        only(
            "base_model: HuggingFaceTB/SmolLM2-360M",
            "streaming: true",
            "sample_packing: true",
            "datasets:\n  - path: a/b\n    type: completion\n  - path: c/d\n    type: completion",
            "max_steps: 1000",
            fires=True,
        ),
        but("sample_packing: false"),
        without("streaming"),
    ),
)
