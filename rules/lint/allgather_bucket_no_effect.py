"""A bucket size that DeepSpeed never uses."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, json_hit

DEFAULT = 500_000_000
KEY = "zero_optimization.allgather_bucket_size"
ZENFLOW = "zero_optimization.zenflow"
"""Its own optimizer does gather by buckets."""


def finds(run: Run) -> Iterator[Hit]:
    """Where the size was chosen; stages 1 and 2 check that it is even, and do nothing else with it."""
    section = run.deepspeed
    size = section.at(KEY) if section is not None and run.zero_stage else None
    if section is None or not isinstance(size, (int, float)) or size == DEFAULT or section.has(ZENFLOW):
        return
    if run.zero_stage < 3 and size % 2:
        message = (
            f"`allgather_bucket_size: {size:.0f}` is odd, and DeepSpeed stops at it; remove it, it does nothing else"
        )
        yield json_hit(run, KEY, message, Remove(KEY), level="error")
        return
    message = (
        f"`allgather_bucket_size: {size:.0f}` has no effect: updated weights are gathered whole; remove it, "
        f"`reduce_bucket_size` is the one that takes memory"
    )
    yield json_hit(run, KEY, message, Remove(KEY), on_key=True)


rule = Rule(
    id="allgather-bucket-no-effect",
    stage="lint",
    title="A bucket size that DeepSpeed never uses",
    finds=finds,
    alone=True,
    level="note",
    proof="accepts",
    why="""
        Stages 1 and 2 split the gathering of updated weights by this size only where torch lacks
        `all_gather_into_tensor`, which it has had since 1.13; stage 3 never reads it. Guides call it a way to
        save memory. It must still be even: stages 1 and 2 assert that.
    """,
    safe=True,
    source=(
        "deepspeed/runtime/utils.py:1016-1019, runtime/zero/stage_1_and_2.py:331, "
        "runtime/engine.py:1888,1947,1989-2037, comm/torch.py:125-131@0.18.9"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "reduce_bucket_size": 50000000,
                    "allgather_bucket_size": 50000000
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "reduce_bucket_size": 50000000
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        but(
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "reduce_bucket_size": 500000000,
                    "allgather_bucket_size": 500000000
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """
        ),
        but("deepspeed: deepspeed_configs/zero1.json", gpus="1x a100-80gb", deepspeed=""),
        but(
            gpus="1x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 2, "allgather_bucket_size": 50000000, "zenflow": true}}',
        ),
    ),
)
