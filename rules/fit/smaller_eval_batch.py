"""Evaluate in smaller batches."""

from advisor import Example, Rule, Run, RunEdits
from advisor.util import divisors


def edits(run: Run) -> list[RunEdits]:
    """Every divisor below the present size, largest first."""
    return [{"eval_batch_size": n} for n in reversed(divisors(run.eval_batch_size)[:-1])]


rule = Rule(
    id="smaller-eval-batch",
    stage="fit",
    title="Evaluate in smaller batches",
    label=lambda before, after: f"eval batch {before.eval_batch_size} -> {after.eval_batch_size}",
    when=lambda run: run.evaluates and run.eval_batch_size > 1 and not run.packs_evaluation,
    edits=edits,
    why="""
        Evaluation materialises the logits of a whole batch, and axolotl evaluates before the first step. Without
        `eval_batch_size` it takes as many rows as `micro_batch_size`. The metric does not depend on how rows are
        batched.
    """,
    cost="Evaluation takes a little longer.",
    because="Evaluation holds the logits of a whole batch.",
    price="Evaluation takes a little longer.",
    safe=True,
    source="axolotl/core/builders/base.py:523-533,680-683, utils/config/__init__.py:215-216@0.19.0",
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
                eval_batch_size: 2
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
            memory="45.3 -> 15.8 GiB",
        ),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                eval_batch_size: 8
            """,
        ),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                micro_batch_size: 4
                eval_batch_size: 8
                sample_packing: true
                attn_implementation: flash_attention_2
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
        ),
        Example(
            gpus="1x a100-40gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 8
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 2048
                micro_batch_size: 8
                eval_batch_size: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                val_set_size: 0.05
                evals_per_epoch: 1
            """,
        ),
    ),
)
