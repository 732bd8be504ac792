"""The model is taken for another, by its name or its path."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.models.search import TAKEN_FOR


def finds(run: Run) -> Iterator[Hit]:
    """Where the catalogue has no such model, and one that is called alike."""
    facts = () if run.model is None else run.model.extra
    for fact in facts:
        if fact.startswith(TAKEN_FOR):
            taken = fact.removeprefix(TAKEN_FOR).removesuffix(".")
            yield Hit(
                "base_model", f"`base_model: {run.base_model}` is taken for {taken}; --model-config PATH says better"
            )


rule = Rule(
    id="model-assumed",
    stage="lint",
    title="The model is taken for one that is called alike",
    finds=finds,
    level="note",
    proof="read",
    why="""
        Checkpoints of one organisation that differ in how far their training went, or in how they are stored, have the
        same architecture; so has a folder that is called after a published model. A fine-tune can have other rows in
        its vocabulary: give its config.json where the last per cent counts.
    """,
    safe=False,
    source="advisor/models/search.py",
    examples=lambda: (
        only("base_model: allenai/Llama-3.1-Tulu-3-8B-SFT", fires=True),
        but("base_model: /models/Qwen2.5-7B", fires=True),
        but("base_model: meta-llama/Llama-3.1-8B"),
        but("base_model: deepseek-ai/DeepSeek-V4-Flash"),
        but("base_model: nobody/has-heard-of-this-3b-sft"),
        only("sequence_len: 4096"),
    ),
)
