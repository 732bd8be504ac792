"""Backward at its two ends: the last layer, with all activations, and the first, with all gradients."""

from dataclasses import replace

from advisor.memory.activations import checkpoint_bytes, saved_bytes, saved_formula, working_bytes
from advisor.memory.forward import SAVED, WORKING, checkpoints, kept_terms
from advisor.memory.gradients import between_micro_steps, gradient_terms
from advisor.memory.groups import Weights
from advisor.memory.ledger import Phase, Term
from advisor.memory.sharding import bucket_terms, gathered_terms, overflow_terms, retained_terms
from advisor.models import Architecture, Block
from advisor.run import Run

TWO_LAYERS = (
    "measured, not derived: Mistral-7B LoRA and QLoRA under FSDP1 (fms-acceleration), 60 h a token more than on one GPU"
)


def backward_phases(run: Run, model: Architecture, weights: Weights, states: tuple[Term, ...]) -> list[Phase]:
    """Backward at its two ends: the last layer, with all activations, and the first, with all gradients."""
    fixed = (*states, *bucket_terms(run, weights), *retained_terms(run, model))
    layer = max(model.blocks, key=lambda block: saved_bytes(run, block) + working_bytes(run, block))
    busy = (*layer_terms(run, layer), *gathered_terms(run, model))
    first = (*between_micro_steps(run, weights), *kept_terms(run, model), *head_gradient(run, model), *busy)
    last = (*gradient_terms(run, weights), *first_layer_terms(run, layer), *busy)
    phases = [Phase("backward", (*fixed, *first)), Phase("backward", (*fixed, *last))]
    overflow = overflow_terms(run, weights)
    if overflow:
        phases.append(
            Phase("backward", (*fixed, *between_micro_steps(run, weights), *kept_terms(run, model), *overflow))
        )
    return phases


def layer_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """One layer's backward: what it recomputes, if it was checkpointed, and the gradients of its intermediates."""
    working = Term(
        "gradients of intermediates",
        "activations",
        working_bytes(run, block),
        f"{run.tokens:,} tokens",
        WORKING,
    )
    if not checkpoints(run):
        return (working,)
    if in_flight(run, block):
        twice = saved_bytes(run, block) + 2 * working.bytes
        working = replace(working, bytes=twice, formula=f"{working.formula}, and a second layer", source=TWO_LAYERS)
    again = saved_bytes(run, block)
    return (
        Term(
            "recomputed layer",
            "activations",
            again,
            f"{saved_formula(run, block)} x {run.tokens:,} tokens",
            SAVED,
        ),
        working,
    )


def in_flight(run: Run, block: Block) -> bool:
    """Whether a second layer is alive in backward: seen with FSDP1 and adapters on dense models, cause not found."""
    dense = block.mlp is None or not block.mlp.experts
    return run.fsdp is not None and run.fsdp.version == 1 and run.adapter is not None and run.world_size > 1 and dense


def first_layer_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """What is still kept when backward reaches the first layer."""
    kept = checkpoint_bytes(run, block) if checkpoints(run) else saved_bytes(run, block)
    return (Term("first layer's activations", "activations", kept, f"{run.tokens:,} tokens", SAVED),)


def head_gradient(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The head's gradient exists before any layer's; buckets hold it where DeepSpeed reduces."""
    trained = run.full_finetune and run.zero is None and run.gradient_accumulation_steps == 1
    if not trained or (run.fsdp is not None and run.world_size > 1):
        return ()
    elements = model.vocab_size * model.hidden_size
    width = 4 if run.embeddings_fp32 else 2
    return (Term("head gradient", "gradients", width * elements, f"{width} B x {elements:,}", SAVED),)
