"""What else context parallelism needs."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, is_mapping, only, without
from advisor.run.axolotl.attention import can_flash, kernel


def finds(run: Run) -> Iterator[Hit]:
    """Ring attention is written for one kernel, and for one packed row at a time."""
    size = run.context_parallel_size
    if size <= 1:
        return
    key = "context_parallel_size" if run.config.get("context_parallel_size") else "sequence_parallel_degree"
    said = f"`{key}: {size}`"
    if not run.is_on("use_glm_dsa_kernels"):
        if kernel(run).base != "flash_attention_2":
            yield other_kernel(run, key, said)
        if run.sample_packing and run.micro_batch_size > 1:
            yield packed_rows(run, said)
    trl = run.config.get("trl")
    if key == "context_parallel_size" and run.rl == "grpo" and is_mapping(trl) and trl.get("use_liger_loss"):
        message = f"`use_liger_loss` is refused by axolotl with {said} in GRPO; set it to `false`"
        yield Hit("trl.use_liger_loss", message, (Set("trl.use_liger_loss", False),))


def other_kernel(run: Run, key: str, said: str) -> Hit:
    """Ring attention takes the place of FlashAttention 2."""
    asked = kernel(run)
    edits: tuple[Change, ...] = (Set("attn_implementation", "flash_attention_2", after=asked.key or key),)
    if asked.key and asked.key != "attn_implementation":
        edits += (Remove(asked.key),)
    with_ = f"`{asked.key}: {asked.said}`" if asked.key else "no `attn_implementation`"
    return Hit(
        asked.key or key,
        f"{said} with {with_}: axolotl stops, since ring attention takes the place of FlashAttention 2; set"
        " `attn_implementation: flash_attention_2`",
        edits if can_flash(run) else (),
    )


def packed_rows(run: Run, said: str) -> Hit:
    """One packed row at a time, and as many more steps between updates."""
    rows = run.micro_batch_size
    steps = rows * run.gradient_accumulation_steps
    edits: tuple[Change, ...] = (Set("micro_batch_size", 1), Set("gradient_accumulation_steps", steps))
    return Hit(
        "micro_batch_size",
        f"`micro_batch_size: {rows}` with {said} and `sample_packing`: axolotl stops, ring attention takes one packed"
        f" row at a time; set it to 1, and `gradient_accumulation_steps` to {steps}",
        () if run.config.get("batch_size") else edits,
    )


rule = Rule(
    id="context-parallel-requirements",
    stage="lint",
    title="What else context parallelism needs",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Context parallelism cuts each row over several GPUs, which pass keys and values around in a ring. axolotl has
        that from ring-flash-attn, in the place of FlashAttention 2 and of no other kernel, and for packed data in a
        form that works on a single row. A `sequence_len` that the size does not divide is no matter: rows are padded.
    """,
    cost="`flash_attention_2` needs the flash-attn package, and ring-flash-attn.",
    safe=True,
    source="axolotl/utils/schemas/validation.py:722-733, 1784-1816@0.19.0",
    examples=lambda: (
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 131072
                sample_packing: true
                attn_implementation: flex_attention
                micro_batch_size: 2
                gradient_accumulation_steps: 4
                context_parallel_size: 8
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 131072
                sample_packing: true
                attn_implementation: flash_attention_2
                micro_batch_size: 1
                gradient_accumulation_steps: 8
                context_parallel_size: 8
            """,
        ),
        Example(
            gpus="4x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 65536
                context_parallel_size: 4
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 65536
                context_parallel_size: 4
                attn_implementation: flash_attention_2
            """,
        ),
        but("sequence_len: 65535", "micro_batch_size: 2", "flash_attention: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "context_parallel_size: 8", "rl: grpo", fires=True),
        but("flash_attention: true", "context_parallel_size: 4", "trl:\n  use_liger_loss: true", without=("rl",)),
        without("context_parallel_size", "rl"),
        but(
            "flash_attention: true",
            "sequence_parallel_degree: 4",
            "trl:\n  use_liger_loss: true",
            without=("context_parallel_size",),
        ),
        but(
            "flash_attention: true",
            "sample_packing: true",
            "micro_batch_size: 1",
            "context_parallel_size: 4",
            without=("rl",),
        ),
        but("flash_attention: true", "context_parallel_size: 4", "trl:\n  num_generations: 4"),
        but(
            "sequence_len: 65536",
            "context_parallel_size: 2",
            "use_glm_dsa_kernels: true",
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            without=("rl",),
            gpus="2x h100-80gb",
        ),
    ),
)
