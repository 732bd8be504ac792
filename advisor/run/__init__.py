"""Documents -> Run: one training run in the field's own terms."""

from advisor.run.answers import Ebft, Rollouts
from advisor.run.run import (
    WITHOUT_DEEPSPEED,
    Adapter,
    AttentionKernel,
    Classifier,
    Device,
    ExpertsKernel,
    FakeQuantization,
    Fsdp,
    Images,
    Lora,
    Loss,
    Precision,
    Prepared,
    Quantization,
    Run,
    Zero,
    ZeroStage,
)

__all__ = [
    "WITHOUT_DEEPSPEED",
    "Adapter",
    "AttentionKernel",
    "Classifier",
    "Device",
    "Ebft",
    "ExpertsKernel",
    "FakeQuantization",
    "Fsdp",
    "Images",
    "Lora",
    "Loss",
    "Precision",
    "Prepared",
    "Quantization",
    "Rollouts",
    "Run",
    "Zero",
    "ZeroStage",
]
