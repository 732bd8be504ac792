"""Compute in bf16 with fp32 masters, as mixed precision is meant; in fp16 where the card has no bf16."""

from advisor import Example, Rule, Run, RunEdits, but, only


def edits(run: Run) -> list[RunEdits]:
    """Half precision with DeepSpeed's fp32 masters where whole weights are trained; then bf16 alone.

    Fp16 cannot train its own weights (torch's GradScaler refuses), so it needs masters or an adapter.
    """
    half = "bf16" if has_bf16(run) else "fp16"
    alone: RunEdits = {"precision": half}
    if run.adapter is not None or not run.takes_deepspeed or run.zero_stage >= 1:
        return [alone]
    mixed: RunEdits = {**alone, "zero_stage": 1}
    return [mixed, alone] if half == "bf16" else [mixed]


def has_bf16(run: Run) -> bool:
    """Whether the card computes in bf16."""
    return run.hardware is None or run.hardware.gpu.bf16


def applies(run: Run) -> bool:
    """Whether weights are in fp32 and half precision is possible."""
    return run.precision == "fp32" and (has_bf16(run) or run.adapter is not None or run.takes_deepspeed)


def label(_before: Run, after: Run) -> str:
    """The precision, and what becomes of the weights that are trained."""
    if after.adapter is not None:
        return f"{after.precision} instead of fp32"
    return f"mixed precision: {after.precision} with fp32 masters" if after.has_masters else "pure bf16"


def because(_before: Run, after: Run) -> str:
    """What it halves, and what it keeps."""
    if after.adapter is None and after.has_masters:
        return "All but the fp32 masters takes 2 bytes instead of 4."
    return "Weights, gradients and activations take 2 bytes instead of 4."


def price(_before: Run, after: Run) -> str:
    """What is rounded, and how far numbers reach."""
    if after.precision == "fp16":
        return "Numbers end at 65,504: models made in bf16 may overflow and skip steps."
    if after.has_masters:
        return "Products are rounded to bf16's 8 bits of mantissa; updates are not."
    return "Updates smaller than a bf16 step of the weight are lost."


rule = Rule(
    id="mixed-precision",
    stage="fit",
    title="Compute in half precision",
    label=label,
    when=applies,
    edits=edits,
    why="""
        In fp32 every weight, gradient and activation takes 4 bytes. bf16 halves them and keeps fp32's range, so no loss
        scaling is needed. DeepSpeed (ZeRO-1 or higher, on one GPU too) updates fp32 masters, which is what mixed
        precision means; plain axolotl and FSDP2 train the bf16 weights themselves: pure bf16. fp16 has a narrower
        range, so the loss is scaled, and torch cannot unscale gradients of fp16 weights: DeepSpeed can.
    """,
    cost="8 bits of mantissa instead of 24: rounding changes; without fp32 masters small updates are lost.",
    because=because,
    price=price,
    safe=False,
    source=(
        "https://arxiv.org/abs/1710.03740; axolotl/utils/config/__init__.py:191-196@0.19.0; "
        "deepspeed/runtime/zero/stage_1_and_2.py:1297-1321@0.18.9"
    ),
    examples=lambda: (
        Example(
            gpus="4x a100-40gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 4
                bf16: false
                gradient_checkpointing: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 4
                bf16: true
                gradient_checkpointing: true
                deepspeed: config.mixed-precision.json
            """,
            memory="38.4 -> 21.9 GiB",
        ),
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 1
                bf16: false
                gradient_checkpointing: true
                optimizer: muon
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                sequence_len: 2048
                micro_batch_size: 1
                bf16: true
                gradient_checkpointing: true
                optimizer: muon
            """,
        ),
        only("base_model: Qwen/Qwen2.5-1.5B", "bf16: auto", gpus="1x a100-40gb"),
        only("base_model: Qwen/Qwen2.5-1.5B", "bf16: false", gpus="", fires=True),
        but("base_model: nobody/knows-this", "optimizer: muon", gpus="1x v100-32gb"),
        only(
            "base_model: nobody/knows-this",
            "bf16: false",
            "deepspeed: deepspeed_configs/zero2.json",
            gpus="1x v100-32gb",
            fires=True,
        ),
        Example(
            gpus="1x t4",
            before="""
                base_model: HuggingFaceTB/SmolLM2-360M
                sequence_len: 1024
                micro_batch_size: 32
                bf16: false
                gradient_checkpointing: true
            """,
            after="""
                base_model: HuggingFaceTB/SmolLM2-360M
                sequence_len: 1024
                micro_batch_size: 32
                bf16: false
                gradient_checkpointing: true
                fp16: true
                deepspeed: config.mixed-precision.json
            """,
            memory="26.2 -> 24.9 GiB",
        ),
    ),
)
