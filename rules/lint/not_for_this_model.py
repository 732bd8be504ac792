"""axolotl refuses this for a model of that name."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Falcon with ``fsdp``, MPT with checkpointing; axolotl looks at the model's name alone."""
    name = run.base_model.lower()
    if "falcon" in name and run.config.get("fsdp"):
        message = "axolotl stops at `fsdp` for any model with `falcon` in its name; use DeepSpeed instead"
        yield Hit("fsdp", message, on_key=True)
    if "mpt" in name and run.config.get("gradient_checkpointing"):
        said = run.config.get("gradient_checkpointing")
        value = str(said).lower() if isinstance(said, bool) else said
        message = f"`gradient_checkpointing: {value}` for a model with `mpt` in its name: axolotl stops; remove it"
        yield Hit("gradient_checkpointing", message, (Set("gradient_checkpointing", False),))


rule = Rule(
    id="not-for-this-model",
    stage="lint",
    title="axolotl refuses this for a model of that name",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Two models of 2023 could not be sharded or checkpointed. axolotl recognizes them by a part of the name, so a
        model of another kind, or a folder with such a name, is refused as well.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:1562-1574@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: mosaicml/mpt-7b
                gradient_checkpointing: true
            """,
            after="""
                base_model: mosaicml/mpt-7b
                gradient_checkpointing: false
            """,
        ),
        only("base_model: tiiuae/falcon-7b", "fsdp: [full_shard, auto_wrap]", gpus="8x a100-80gb", fires=True),
        but("gradient_checkpointing: true", without=("fsdp",)),
        only("base_model: mosaicml/mpt-7b"),
        only("base_model: nobody/knows-this", "fsdp:\n  - full_shard\n  - auto_wrap"),
    ),
)
