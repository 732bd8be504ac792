"""Evaluation in larger batches sets the peak."""

from collections.abc import Iterator

from advisor import GIB, Estimate, Example, Hit, Rule, Run, Set, but, gib, only
from advisor.memory import estimate

LEAST = GIB


def finds(run: Run) -> Iterator[Hit]:
    """Where it is the larger batch that makes evaluation the worst phase. A run that does not fit gets a step."""
    if not run.evaluates or run.eval_batch_size <= run.micro_batch_size:
        return
    found = estimate(run)
    if found is None or found.on_gpu == "does-not-fit":
        return
    evaluation, training = peaks(found)
    if evaluation - training < LEAST:
        return
    yield Hit(
        "eval_batch_size",
        f"`eval_batch_size: {run.eval_batch_size}` above `micro_batch_size: {run.micro_batch_size}` sets the peak:"
        f" evaluation needs {gib(evaluation)}, training {gib(training)}; lower it to {run.micro_batch_size}",
        edits=(Set("eval_batch_size", run.micro_batch_size),),
        level="note" if found.verdict == "fits" else "warning",
    )


def peaks(found: Estimate) -> tuple[int, int]:
    """The bytes of evaluation, and the largest of the other phases."""
    evaluation = max(phase.bytes for phase in found.phases if phase.name == "evaluation")
    return evaluation, max(phase.bytes for phase in found.phases if phase.name != "evaluation")


rule = Rule(
    id="eval-batch-larger",
    stage="lint",
    title="Evaluation in larger batches sets the peak",
    finds=finds,
    level="note",
    proof="read",
    offer=True,
    safe=True,
    why="""
        Evaluation keeps no activations, but it makes the logits of the whole batch. axolotl evaluates before the first
        step; without `eval_batch_size` it takes `micro_batch_size`. The metric does not depend on how rows are batched.
    """,
    cost="Evaluation takes a little longer.",
    source="axolotl/utils/config/__init__.py:207-209@0.19.0; axolotl/core/builders/base.py:523-533@0.19.0;"
    " advisor/memory/forward.py",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 4096
                micro_batch_size: 1
                eval_batch_size: 8
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 4096
                micro_batch_size: 1
                eval_batch_size: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
        ),
        but("micro_batch_size: 2", "eval_batch_size: 2"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 4096",
            "eval_batch_size: 8",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            gpus="1x rtx-4090",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "eval_batch_size: 8",
            "val_set_size: 0.05",
            "evals_per_epoch: 1",
            gpus="",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "eval_batch_size: 8", "val_set_size: 0.05", "evals_per_epoch: 1"),
        only("base_model: meta-llama/Llama-3.1-8B", "eval_batch_size: 8"),
        but(
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_fused_linear_cross_entropy: true",
            without=("micro_batch_size", "eval_batch_size", "attn_implementation"),
        ),
    ),
)
