"""Fewer rows at once, as many per optimizer step."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.engine.labels import batches
from advisor.util import divisors


def edits(run: Run) -> list[RunEdits]:
    """Every divisor below the present size, largest first, with accumulation raised to match.

    KTO takes two rows at least (trl/trainer/kto_trainer.py:806@1.9.0); what loses the gradients of earlier micro-steps
    must not accumulate.
    """
    if run.offloads_fsdp1 and run.sync_each_batch:
        return []
    size, steps = run.micro_batch_size, run.gradient_accumulation_steps
    least = 2 if run.rl == "kto" else 1
    smaller = [n for n in reversed(divisors(size)[:-1]) if n >= least]
    return [{"micro_batch_size": n, "gradient_accumulation_steps": steps * size // n} for n in smaller]


rule = Rule(
    id="smaller-micro-batch",
    stage="fit",
    title="Use a smaller micro batch, keep the global batch",
    label=batches,
    when=lambda run: bool(edits(run)),
    edits=edits,
    why="""
        Activations and logits grow with the rows that are in flight. Accumulating over more, smaller micro batches
        gives the optimizer the same gradient.
    """,
    cost=(
        "More, smaller kernels: a few percent slower where a single row already fills the GPU, more where it does not, "
        "and where weights or gradients travel in every micro-step (ZeRO-2 and 3, FSDP, offload)."
    ),
    because="Fewer rows at once; the optimizer sees the same rows.",
    price="A few percent slower; more for short rows, or where weights travel.",
    safe=True,
    source="https://huggingface.co/docs/transformers/perf_train_gpu_one",
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                micro_batch_size: 8
                gradient_accumulation_steps: 2
                optimizer: adamw_torch_fused
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                # a comment that stays
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                micro_batch_size: 4
                gradient_accumulation_steps: 4
                optimizer: adamw_torch_fused
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
                # a comment that stays
            """,
            memory="71.1 -> 43.4 GiB",
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "micro_batch_size: 1"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "micro_batch_size: 4",
            "gradient_accumulation_steps: 2",
            "sequence_len: 4096",
            "fsdp_version: 1",
            "fsdp_config: {offload_params: true}",
            gpus="2x rtx-4090",
            fires=True,
        ),
        but("accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}"),
        but(
            "accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}",
            "fsdp_config: {offload_params: false}",
            fires=True,
        ),
    ),
)
