"""DeepSpeed buffers of a size that suits the card."""

from advisor import Example, Rule, Run, RunEdits, only
from advisor.run.deepspeed import live_for

BUCKET = 50_000_000
LIVE = 100_000_000
"""Elements kept for reuse, and of a sub-group."""


def edits(run: Run) -> RunEdits:
    """Smaller buckets, and for ZeRO-3 fewer live parameters and smaller sub-groups."""
    zero = run.zero
    assert zero is not None
    wanted = {"reduce_bucket_size": BUCKET}
    if zero.stage == 3:
        wanted |= {"max_live_parameters": live_for(run.model), "max_reuse_distance": LIVE, "sub_group_size": LIVE}
    return {name: size for name, size in wanted.items() if getattr(zero, name) > size}


rule = Rule(
    id="right-sized-buckets",
    stage="fit",
    title="Size DeepSpeed's buckets and live parameters",
    label="smaller DeepSpeed buffers",
    when=lambda run: run.zero is not None and run.zero.stage > 0 and bool(edits(run)),
    edits=edits,
    why="""
        DeepSpeed's default bucket of 500 million elements takes 0.93 GiB, twice that with overlap_comm in stages 1 and
        2, whatever the model or adapter. ZeRO-3 may keep a billion gathered parameters; two layers are enough to
        gather the next one while one computes.
    """,
    cost="More, smaller messages: a percent or two over fast links.",
    because="Buckets are smaller, and ZeRO-3 keeps fewer gathered weights.",
    price="More, smaller messages: a percent or two over fast links.",
    safe=True,
    source=(
        "deepspeed/runtime/zero/config.py:113,215,221@0.18.9; "
        "deepspeed/runtime/zero/partitioned_param_coordinator.py:429-431@0.18.9; "
        "measured in https://github.com/deepspeedai/DeepSpeed/issues/1302"
    ),
    examples=lambda: (
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 512
                micro_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 2, "overlap_comm": true}, "bf16": {"enabled": true}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 50000000}, "bf16": {"enabled": true}}
            """,  # noqa: E501
            memory="5.1 -> 4.0 GiB",
        ),
        only(
            "base_model: Qwen/Qwen2.5-1.5B",
            "deepspeed: zero.json",
            gpus="2x rtx-4090",
            deepspeed='{"zero_optimization": {"stage": 2, "reduce_bucket_size": 20000000}, "bf16": {"enabled": true}}',
        ),
        only("base_model: Qwen/Qwen2.5-1.5B"),
        only("base_model: Qwen/Qwen2.5-1.5B", "deepspeed: zero.json", deepspeed="{}"),
    ),
)
