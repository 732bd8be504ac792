"""What answering takes: the keys and values of every token so far, and under ZeRO-3 the whole model."""

from dataclasses import replace

from advisor.memory.activations import forward_working_bytes
from advisor.memory.groups import Weights
from advisor.memory.ledger import Term
from advisor.models import Architecture
from advisor.run import Run

CACHE = "transformers/cache_utils.py, DynamicLayer.update@5.16.1: a row's keys and values are copied as it grows"
GATHERED = "trl/models/utils.py, unwrap_model_for_generation@1.9.0: ZeRO-3's weights are whole until the last answer"
WORKING = "the prompt's pass through one layer, without gradients"


def generation_terms(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The worst moment of evaluation by generating: the prompts' own pass, and the cache at its fullest."""
    tokens = run.eval_sequence_len + run.generated_tokens
    asked = replace(run, micro_batch_size=run.generated_rows, sequence_len=run.eval_sequence_len)
    working = max(forward_working_bytes(asked, block) for block in model.blocks)
    gathered = weights.bytes if run.gathers_to_generate and run.zero_stage == 3 and run.shard_size > 1 else 0
    return (
        *cache_terms(run, model, run.generated_rows * tokens),
        Term("one layer's intermediates", "activations", working, f"{asked.tokens:,} tokens", WORKING),
        Term("weights gathered to generate", "weights", gathered, f"{gathered:,} B", GATHERED),
    )


def cache_terms(run: Run, model: Architecture, tokens: int) -> tuple[Term, ...]:
    """Keys and values of all tokens in all layers, and one layer's twice while a token is added."""
    width = run.compute_bytes
    layers = [(b.count, b.attention.key_width + b.attention.value_width) for b in model.blocks if b.attention]
    each, widest = sum(count * both for count, both in layers), max((both for _, both in layers), default=0)
    text = f"{width} B x {tokens:,} tokens x ({each:,} in all layers + {widest:,})"
    return (Term("key-value cache", "activations", width * tokens * (each + widest), text, CACHE),)
