"""Attention that keeps its probabilities."""

from collections.abc import Iterator

from advisor import GIB, Example, Hit, Rule, Run, Set, but, gib, only
from advisor.memory.activations.attention import eager_amounts
from advisor.memory.activations.dtypes import numbers
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.models import Block
from advisor.run.axolotl.attention import kernel, without_scores

NOTICEABLE = GIB
COSTS = {
    "sdpa": "None: the kernel comes with torch.",
    "flash_attention_2": "It needs the flash-attn package, or its binary from the hub.",
    "flex_attention": "It is compiled in the first step.",
}


def finds(run: Run) -> Iterator[Hit]:
    """Where the probabilities of one layer are worth a word, and the model has another kernel."""
    asked, model = kernel(run), run.model
    if model is None or not (model.family.sdpa or model.supports_flash_attention):
        return
    by_default = not asked.name and not model.family.sdpa
    kept = max((probabilities(run, block) for block in model.blocks), default=0)
    if kept < NOTICEABLE or not (asked.name == "eager" or by_default):
        return
    instead = without_scores(run)
    which = "the eager attention that this model has by default" if by_default else "eager attention"
    yield Hit(
        asked.key or "base_model",
        f"{which} keeps {gib(kept)} of probabilities a layer at `sequence_len: {run.sequence_len}`;"
        f" `attn_implementation: {instead}` keeps none",
        () if asked.key == "eager_attention" else (Set("attn_implementation", instead),),
        cost=COSTS.get(instead, ""),
    )


def probabilities(run: Run, block: Block) -> int:
    """Bytes of what is as wide as scores and kept for the backward of one layer."""
    attention = block.attention
    if attention is None or attention.kind not in {"softmax", "latent"}:
        return 0
    family, norm = family_and_norm(run, block)
    amounts = eager_amounts(numbers(run, norm), family, attention)
    each = sum(coefficient for coefficient, symbol in amounts if symbol == "heads S")
    return each * attention.heads * run.tokens * run.sequence_len // run.tensor_parallel_size


rule = Rule(
    id="quadratic-attention",
    stage="lint",
    title="Attention that keeps its probabilities",
    finds=finds,
    level="note",
    proof="read",
    why="""
        Eager attention multiplies out the scores of every token with every other, for every head, and keeps their
        softmax in fp32 and once more in half precision for the backward: four times as much for rows twice as long.
        With activation checkpointing that is there for one layer at a time, without it for all. The fused kernels
        recompute it in pieces. Models whose class has no sdpa get eager attention where no kernel is named.
    """,
    cost="""
        `sdpa` needs nothing more; `flash_attention_2` needs the flash-attn package, or its binary from the hub;
        `flex_attention` is compiled in the first step.
    """,
    safe=lambda run: not run.sample_packing or bool(kernel(run).name),
    source=(
        "https://arxiv.org/abs/2205.14135; transformers/models/llama/modeling_llama.py:204-210, "
        "transformers/modeling_utils.py:1953-1960@5.16.1; advisor/memory/activations/attention.py"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                attn_implementation: eager
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                attn_implementation: flash_attention_2
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: openai/gpt-oss-20b
                sequence_len: 8192
            """,
            after="""
                base_model: openai/gpt-oss-20b
                sequence_len: 8192
                attn_implementation: flex_attention
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 1024", "attn_implementation: eager"),
        but("base_model: meta-llama/Llama-3.1-8B", gpus="1x a100-80gb"),
        but("attn_implementation: sdpa", gpus="1x a100-80gb"),
        only("base_model: nobody/knows-this"),
        but("base_model: bigscience/bloom-7b1", gpus="1x a100-80gb"),
        only(
            "base_model: nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "attn_implementation: eager", "sequence_len: 1024"
        ),
        only("base_model: Qwen/Qwen3-Next-80B-A3B-Instruct", "attn_implementation: eager", "sequence_len: 3072"),
    ),
)
