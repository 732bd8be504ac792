"""The DeepSpeed config that the YAML names is not there."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Where ``deepspeed:`` names a file that is neither there nor one of axolotl's own."""
    if run.deepspeed_named and run.deepspeed is None and run.fsdp is None:
        where = "neither in the working directory nor next to the YAML"
        yield Hit(
            "deepspeed",
            f"`deepspeed: {run.deepspeed_named}` is {where}: axolotl stops; correct the path",
        )


rule = Rule(
    id="missing-deepspeed-file",
    stage="lint",
    title="The DeepSpeed config that the YAML names is not there",
    finds=finds,
    level="error",
    proof="read",
    why="""
        axolotl resolves the path from the working directory and hands it to transformers, which stops with "Expected a
        string path to an existing deepspeed config". axolotl's own files count as present: `axolotl fetch
        deepspeed_configs` brings them.
    """,
    safe=False,
    source="accelerate/utils/deepspeed.py:153-156@1.13.0; axolotl/utils/trainer.py:659-690@0.19.0",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: configs/no_such_file.json",
            gpus="8x a100-80gb",
            fires=True,
        ),
        but("deepspeed: deepspeed_configs/zero1.json"),
        but("fsdp:\n  - full_shard\n  - auto_wrap", gpus="1x a100-80gb"),
        only("base_model: meta-llama/Llama-3.1-8B"),
    ),
)
