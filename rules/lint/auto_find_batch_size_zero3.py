"""A search for the batch size under ZeRO-3."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but


def finds(run: Run) -> Iterator[Hit]:
    """Where ``auto_find_batch_size`` meets stage 3."""
    if run.zero_stage == 3 and run.config.get("auto_find_batch_size") is True:
        yield Hit(
            "auto_find_batch_size",
            "`auto_find_batch_size` with ZeRO-3: the trainer does not start; remove it, and `micro_batch_size` counts",
            (Remove("auto_find_batch_size"),),
        )


rule = Rule(
    id="auto-find-batch-size-zero3",
    stage="lint",
    title="A search for the batch size under ZeRO-3",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        After an out-of-memory error the search restarts with fewer rows, which transformers cannot do with a model
        that ZeRO-3 has partitioned. Its Trainer raises once the model has been loaded.
    """,
    safe=True,
    source="transformers/trainer.py:863-871@5.16.1; axolotl/core/builders/causal.py:239-242@0.19.0",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-14B
                micro_batch_size: 4
                auto_find_batch_size: true
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
            after="""
                base_model: Qwen/Qwen2.5-14B
                micro_batch_size: 4
                deepspeed: deepspeed_configs/zero3_bf16.json
            """,
        ),
        but("base_model: Qwen/Qwen2.5-3B", "deepspeed: deepspeed_configs/zero1.json"),
        but(without=("micro_batch_size",), gpus="1x a100-80gb", fixed=True),
    ),
)
