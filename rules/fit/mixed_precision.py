"""Compute in bf16, or in fp16 with an adapter on cards that have no bf16."""

from advisor import Example, Rule, Run, RunEdits, but, only


def edits(run: Run) -> RunEdits:
    """bf16 where the card has it.

    Fp16 cannot train its own weights (torch's GradScaler refuses), so it needs an adapter.
    """
    has_bf16 = run.hardware is None or run.hardware.gpu.bf16
    return {"precision": "bf16" if has_bf16 else "fp16"}


def applies(run: Run) -> bool:
    """Whether weights are in fp32 and half precision is possible."""
    has_bf16 = run.hardware is None or run.hardware.gpu.bf16
    return run.precision == "fp32" and (has_bf16 or run.adapter is not None)


rule = Rule(
    id="mixed-precision",
    stage="fit",
    title="Compute in half precision",
    label=lambda before, after: f"{after.precision} instead of {before.precision}",
    when=applies,
    edits=edits,
    why="""
        In fp32 every weight, gradient and activation takes 4 bytes. bf16 halves them and keeps fp32's range,
        so no loss scaling is needed. fp16 has a narrower range and cannot unscale gradients of its own weights.
    """,
    cost="8 bits of mantissa instead of 24: rounding changes, and small updates to large weights can be lost.",
    because="Weights, gradients and activations take 2 bytes instead of 4.",
    price="Rounding changes, and small updates to large weights can be lost.",
    safe=False,
    source="https://arxiv.org/abs/1710.03740; axolotl/utils/config/__init__.py:191-196@0.19.0",
    examples=(
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 1
                bf16: false
                gradient_checkpointing: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 1
                bf16: true
                gradient_checkpointing: true
            """,
            memory="24.8 -> 14.2 GiB",
        ),
        only("base_model: Qwen/Qwen2.5-1.5B", "bf16: auto", gpus="1x a100-40gb"),
        only("base_model: Qwen/Qwen2.5-1.5B", "bf16: false", gpus="1x v100-32gb"),
        only("base_model: Qwen/Qwen2.5-1.5B", "bf16: false", gpus="", fires=True),
        but("base_model: nobody/knows-this", gpus="1x v100-32gb"),
    ),
)
