"""More rows at once, as many per optimizer step."""

from advisor import Example, Rule, Run, RunEdits, but, only
from advisor.engine.labels import batches
from advisor.util import divisors


def edits(run: Run) -> list[RunEdits]:
    """Every divisor of the accumulation steps, smallest first, moved into the micro batch."""
    size, steps = run.micro_batch_size, run.gradient_accumulation_steps
    return [{"micro_batch_size": size * n, "gradient_accumulation_steps": steps // n} for n in divisors(steps)[1:]]


def holds_one_row(run: Run) -> bool:
    """Whether tiled MLPs mix up the gradients of rows, as axolotl's own do (monkeypatch/tiled_mlp/base.py:299@0.19.0).

    DeepSpeed's, which take their place under it, go through rows one after the other.
    """
    return run.tiled_mlp_shards is not None and run.zero is None


def because(before: Run, after: Run) -> str:
    """Under FSDP2 the last micro-step alone reduces gradients, and those of one before are kept whole."""
    accumulates = before.fsdp is not None and before.fsdp.version == 2 and not before.sync_each_batch
    if accumulates and after.gradient_accumulation_steps == 1:
        return "Without accumulation no GPU keeps gradients whole between micro-steps."
    return "The GPU waits less for kernel launches and memory."


rule = Rule(
    id="larger-micro-batch",
    stage="speed",
    title="Take a larger micro batch at the same global batch",
    label=batches,
    when=lambda run: run.gradient_accumulation_steps > 1 and run.context_parallel_size == 1 and not holds_one_row(run),
    edits=edits,
    why="""
        Small micro batches leave the GPU waiting on kernel launches and on memory. The global batch stays as it is.
    """,
    cost="Activations and logits grow in proportion; offered only while the run still fits.",
    because=because,
    price="Activations and logits grow in proportion.",
    safe=True,
    source="https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/",
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
                sequence_len: 1024
                micro_batch_size: 1
                gradient_accumulation_steps: 8
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                sequence_len: 1024
                micro_batch_size: 8
                gradient_accumulation_steps: 1
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="8.3 -> 19.7 GiB",
        ),
        but(without=("sequence_len", "micro_batch_size", "gradient_checkpointing", "attn_implementation"), fixed=True),
        but("tiled_mlp: true"),
        but(
            "tiled_mlp: true",
            "deepspeed: zero.json",
            deepspeed='{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "gradient_accumulation_steps: 8", "context_parallel_size: 2"),
    ),
)
