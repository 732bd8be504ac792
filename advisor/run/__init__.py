"""Documents -> Run: one training run in the field's own terms."""

from advisor.run.run import (
    WITHOUT_DEEPSPEED,
    Adapter,
    AttentionKernel,
    Device,
    ExpertsKernel,
    Fsdp,
    Images,
    Lora,
    Loss,
    Precision,
    Quantization,
    Rollouts,
    Run,
    Zero,
    ZeroStage,
)

__all__ = [
    "WITHOUT_DEEPSPEED",
    "Adapter",
    "AttentionKernel",
    "Device",
    "ExpertsKernel",
    "Fsdp",
    "Images",
    "Lora",
    "Loss",
    "Precision",
    "Quantization",
    "Rollouts",
    "Run",
    "Zero",
    "ZeroStage",
]
