"""Reduce buckets of DeepSpeed's default size on a small card."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, gib, json_hit, only
from advisor.memory import estimate
from advisor.run.build import edited

KEY = "zero_optimization.reduce_bucket_size"
BUCKET = 50_000_000
NOTICEABLE = 0.03


def finds(run: Run) -> Iterator[Hit]:
    """Where smaller buckets would free a part of the card that is worth a word; the plan does so where nothing fits."""
    zero, found = run.zero, estimate(run)
    if zero is None or zero.reduce_bucket_size <= BUCKET:
        return
    if found is None or found.on_gpu == "does-not-fit":
        return
    sized = estimate(edited(run, {"reduce_bucket_size": BUCKET}, rule.id))
    freed = found.needed.low - sized.needed.low if sized is not None else 0
    if freed > NOTICEABLE * found.usable:
        default = "" if run.deepspeed is not None and run.deepspeed.has(KEY) else ", DeepSpeed's default,"
        message = (
            f"a `reduce_bucket_size` of {zero.reduce_bucket_size:,} elements{default} takes {gib(freed)} of "
            f"{gib(found.usable)} more than {BUCKET:,}, whatever is trained; write the smaller one into the JSON"
        )
        yield json_hit(run, KEY, message, Set(KEY, BUCKET))


rule = Rule(
    id="default-buckets-on-small-card",
    stage="lint",
    title="Reduce buckets of DeepSpeed's default size on a small card",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    why="""
        Gradients are collected in buckets of 500 million elements unless the JSON sets another size: 0.93 GiB in half
        precision, twice that with `overlap_comm`, and once more while a full bucket is reduced. They are allocated
        whole, for an adapter of a few million parameters as well.
    """,
    cost="More, smaller messages: a percent or two over fast links.",
    safe=True,
    source=(
        "deepspeed/runtime/zero/config.py:113, stage_1_and_2.py:2307-2323@0.18.9; measured in "
        "https://github.com/deepspeedai/DeepSpeed/issues/1302"
    ),
    examples=lambda: (
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: mistralai/Mistral-7B-v0.1
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 4096
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "overlap_comm": true
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "overlap_comm": true,
                    "reduce_bucket_size": 50000000
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: deepspeed_configs/zero1.json",
            without=("sequence_len", "plugins", "liger_fused_linear_cross_entropy"),
            gpus="2x a100-80gb",
            deepspeed="",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: zero.json",
            gpus="",
            deepspeed='{"zero_optimization": {"stage": 2}}',
        ),
        but(
            "base_model: meta-llama/Llama-3.1-70B",
            deepspeed='{"zero_optimization": {"stage": 2, "overlap_comm": true}, "bf16": {"enabled": true}}',
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: zero_optimization.reduce_bucket_size"),
    ),
)
