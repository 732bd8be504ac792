"""Documents -> Run: one training run in the field's own terms."""

from advisor.run.run import WITHOUT_DEEPSPEED, AttentionKernel, Fsdp, Lora, Run, Zero

__all__ = ["WITHOUT_DEEPSPEED", "AttentionKernel", "Fsdp", "Lora", "Run", "Zero"]
