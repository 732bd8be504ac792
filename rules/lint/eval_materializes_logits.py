"""Evaluation needs more than training, for logits that training never makes."""

from collections.abc import Iterator

from advisor import GIB, Estimate, Example, Hit, Rule, Run, but, gib, only, without
from advisor.memory import estimate

LEAST = GIB


def finds(run: Run) -> Iterator[Hit]:
    """Liger's fused loss, which steps aside outside of training. A run that does not fit is told so by others."""
    if not run.evaluates or run.loss != "liger-fused":
        return
    found = estimate(run)
    if found is None or found.on_gpu == "does-not-fit" or run.eval_batch_size > run.micro_batch_size:
        return
    evaluation, training = peaks(found)
    if evaluation - training < LEAST:
        return
    yield Hit(
        "liger_fused_linear_cross_entropy",
        f"`liger_fused_linear_cross_entropy` works in training alone: evaluation makes the logits and needs"
        f" {gib(evaluation)}, training {gib(training)}{shorter(run)}",
        level="note" if found.verdict == "fits" else "warning",
    )


def peaks(found: Estimate) -> tuple[int, int]:
    """The bytes of evaluation, and the largest of the other phases."""
    evaluation = max(phase.bytes for phase in found.phases if phase.name == "evaluation")
    return evaluation, max(phase.bytes for phase in found.phases if phase.name != "evaluation")


def shorter(run: Run) -> str:
    """What makes fewer logits at a time."""
    keys = ["eval_batch_size"] * (run.eval_batch_size > 1 and not run.packs_evaluation)
    keys += ["eval_sequence_len"] * run.cuts_evaluation
    return f"; lower {' or '.join(f'`{key}`' for key in keys)}" if keys else "; `cut_cross_entropy` makes none there"


rule = Rule(
    id="eval-materializes-logits",
    stage="lint",
    title="Evaluation needs more than training, for logits that training never makes",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    why="""
        Liger skips the logits only while the model is in training mode. With `eval_steps`, `evals_per_epoch` or
        `eval_strategy`, axolotl evaluates before the first step, so this shows at once.
    """,
    source="axolotl/integrations/liger/models/base.py:84-105@0.19.0; axolotl/core/builders/base.py:523-533@0.19.0;"
    " advisor/memory/loss.py",
    examples=lambda: (
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 8192
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                val_set_size: 0.05
                evals_per_epoch: 1
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
            fires=True,
        ),
        without("val_set_size", "evals_per_epoch"),
        but(without=("attn_implementation",), gpus="1x rtx-3060"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_fused_linear_cross_entropy: true",
            gpus="",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_fused_linear_cross_entropy: true",
        ),
        but(
            "sequence_len: 4096",
            "micro_batch_size: 1",
            "eval_batch_size: 4",
            without=("attn_implementation",),
            gpus="1x a100-80gb",
        ),
        but(
            "sequence_len: 2048",
            "eval_sequence_len: 8192",
            "test_datasets: [{path: org/data, split: test, type: alpaca}]",
            without=("attn_implementation", "val_set_size", "plugins", "liger_fused_linear_cross_entropy"),
            gpus="1x a100-80gb",
        ),
        but(
            "rl: dpo",
            "dpo_use_liger_kernel: true",
            without=("attn_implementation", "plugins", "liger_fused_linear_cross_entropy"),
            gpus="1x a100-80gb",
        ),
    ),
)
