"""A full fine-tune in fp32 on a card that has bf16."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, only
from advisor.memory import estimate
from advisor.run.build import edited
from advisor.speed import StepTime, step_time
from advisor.util import seconds


def finds(run: Run) -> Iterator[Hit]:
    """Where it fits as written; a plan has mixed precision as its first step."""
    if run.precision != "fp32" or run.adapter is not None or run.hardware is None or not run.hardware.gpu.bf16:
        return
    found = estimate(run)
    if found is None or found.verdict != "fits" or not (run.takes_deepspeed or run.zero is not None):
        return
    yield Hit("bf16" if run.config.has("bf16") else "", f"trained in fp32{faster(run)}; {remedy(run)}")


def remedy(run: Run) -> str:
    """What mixed precision is here."""
    return "write `bf16: true`" if run.zero_stage >= 1 else "write `bf16: true` with ZeRO-1, which keeps fp32 masters"


def faster(run: Run) -> str:
    """How long a step takes, and how long it would."""
    sharding = {} if run.zero_stage >= 1 else {"zero_stage": 1}
    old, new = step_time(run), step_time(edited(run, {"precision": "bf16", **sharding}, rule.id))
    if not (isinstance(old, StepTime) and isinstance(new, StepTime)):
        return ""
    return f": {seconds(old.expected)} s a step, mixed precision would take {seconds(new.expected)}"


rule = Rule(
    id="fp32-training",
    stage="lint",
    title="A full fine-tune in fp32",
    finds=finds,
    level="note",
    proof="read",
    safe=False,
    offer=True,
    why="""
        With bf16 products and fp32 master weights a run trains as in fp32, at half the bytes and a multiple of the
        rate. DeepSpeed keeps the masters, on one GPU too; plain axolotl and FSDP2 train the bf16 weights themselves.
    """,
    cost="Products are rounded to bf16's 8 bits of mantissa.",
    source="https://arxiv.org/abs/1710.03740; deepspeed/runtime/zero/stage_1_and_2.py:1297-1321@0.18.9",
    examples=lambda: (
        Example(
            gpus="4x rtx-a6000",
            before="""
                base_model: meta-llama/Llama-3.2-1B
                sequence_len: 2048
                micro_batch_size: 1
                bf16: false
            """,
            fires=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.2-1B",
            "bf16: false",
            "deepspeed: ds.json",
            gpus="4x rtx-a6000",
            deepspeed='{"zero_optimization": {"stage": 2}}',
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.2-1B", "bf16: false", gpus="4x v100-32gb"),
        only("base_model: meta-llama/Llama-3.1-8B", "bf16: false", gpus="4x rtx-a6000"),
        only(
            "base_model: meta-llama/Llama-3.2-1B",
            "bf16: false",
            "fsdp_version: 2",
            "fsdp_config:\n  reshard_after_forward: true",
            gpus="4x rtx-a6000",
        ),
        but("adapter: lora\nlora_r: 8\nlora_target_linear: true", gpus="4x rtx-a6000"),
        only("base_model: nobody/knows-this", "bf16: false"),
        only("base_model: meta-llama/Llama-3.2-1B", gpus="4x rtx-a6000"),
    ),
)
