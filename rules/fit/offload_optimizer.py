"""Optimizer states on the host."""

from advisor import Example, Rule, Run, RunEdits, only
from advisor.engine.sharing import spares_logits

# accelerate turns anything else into DeepSpeedCPUAdam with L2 decay: accelerate/utils/deepspeed.py:29-97@1.13.0.
KEPT = frozenset({"adamw_torch", "adamw_torch_fused"})


def edits(run: Run) -> RunEdits:
    """To the host, under the stage that is there, or ZeRO-2; with the optimizer that will really run."""
    stage = {"zero_stage": 2} if run.zero_stage == 0 else {}
    return stage | {"offload_optimizer": "cpu"} | ({} if run.optimizer in KEPT else {"optimizer": "adamw_torch_fused"})


def applies(run: Run) -> bool:
    """Whether the states are on the GPU and DeepSpeed may move them."""
    on_gpu = run.zero is None or run.zero.offload_optimizer == "gpu"
    return run.takes_deepspeed and on_gpu


def label(before: Run, after: Run) -> str:
    """What goes to the host, with the stage and the optimizer where they are new."""
    stage = "" if after.zero_stage == before.zero_stage else f"ZeRO-{after.zero_stage}, "
    states = "optimizer" if after.optimizer == before.optimizer else "AdamW"
    return f"{stage}{states} states on the host"


def because(before: Run, after: Run) -> str:
    """What goes, or where most of it comes from DeepSpeed alone, that."""
    if spares_logits(before, after):
        return "No fp32 copy of the logits is made; optimizer states lie on the host."
    return "The host keeps optimizer states and master weights, and does the step."


rule = Rule(
    id="offload-optimizer",
    stage="fit",
    title="Keep optimizer states and master weights on the host (ZeRO-Offload)",
    label=label,
    when=applies,
    edits=edits,
    why="""
        The host keeps 18 to 22 bytes a trained parameter and does the step; gradients leave bucket by bucket. It is the
        same training from torch's AdamW alone: accelerate replaces any other optimizer by DeepSpeed's CPU Adam with L2
        decay.
    """,
    cost=(
        "Pinned host memory, and a step on the CPU: much slower where the GPU has few tokens to work on in a step, a "
        "third slower where it has many. Nothing to speak of for adapters."
    ),
    because=because,
    price="Pinned host memory, and a slower step on the CPU, adapters aside.",
    safe=lambda run: run.optimizer in KEPT,
    source="https://arxiv.org/abs/2101.06840; accelerate/utils/deepspeed.py:29-97@1.13.0",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb host=512GiB",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 2048
                micro_batch_size: 1
                optimizer: adamw_torch_fused
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 2048
                micro_batch_size: 1
                optimizer: adamw_torch_fused
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                deepspeed: config.offload-optimizer.json
            """,
            memory="59.9 -> 23.0 GiB",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero2.json"),
        only("base_model: meta-llama/Llama-3.1-8B", "optimizer: muon"),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero1.json", fires=True),
    ),
)
