"""ZeRO-3 that never gathers ahead."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, json_hit

ZERO = "zero_optimization."
NAMES = ("stage3_prefetch_bucket_size", "prefetch_bucket_size")


def finds(run: Run) -> Iterator[Hit]:
    """Where gathering ahead has no bucket; ``zero-3-prefetch`` speaks of the budget that live parameters leave."""
    zero, section = run.zero, run.deepspeed
    if zero is None or section is None or zero.stage != 3 or run.world_size == 1:
        return
    if zero.prefetch_bucket_size == 0:
        name = next((name for name in NAMES if section.has(ZERO + name)), NAMES[0])
        message = f"`{name}: 0` switches prefetching off: each layer waits for its weights; remove it"
        yield json_hit(run, ZERO + name, message, Remove(ZERO + name))


rule = Rule(
    id="zero3-prefetch-disabled",
    stage="lint",
    title="ZeRO-3 that never gathers ahead",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    why="""
        ZeRO-3 fetches the weights of the next layers while one computes, up to `stage3_prefetch_bucket_size` elements.
        At 0 it prefetches nothing. DeepSpeed's default is 50 million, and "auto" nine tenths of the hidden size
        squared.
    """,
    cost="The gathered weights of the next layers: 2 bytes an element of the prefetch bucket.",
    safe=True,
    source=(
        "deepspeed/runtime/zero/partitioned_param_coordinator.py:429-431@0.18.9; "
        "transformers/integrations/deepspeed.py:229-235@5.16.1"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-14B
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 0},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 3},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        but("deepspeed: deepspeed_configs/zero3_bf16.json", deepspeed=""),
        but(gpus="1x a100-80gb", deepspeed='{"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 0}}'),
        but("fsdp:\n  - full_shard\n  - auto_wrap", gpus="1x a100-80gb", deepspeed="{}"),
        but(deepspeed='{"zero_optimization": {"stage3_prefetch_bucket_size": 0}}'),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3, "prefetch_bucket_size": 0}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 3}}
            """,
        ),
    ),
)
