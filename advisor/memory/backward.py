"""Backward at its two ends: the last layer, with all activations, and the first, with all gradients."""

from typing import Literal

from advisor.memory import fsdp
from advisor.memory.activations import checkpoint_bytes
from advisor.memory.deepspeed import bucket_terms, flattened_terms, gathered_terms, overflow_terms
from advisor.memory.forward import SAVED, WORKING, kept_terms
from advisor.memory.gradients import (
    between_micro_steps,
    cuts_units,
    gradient_terms,
    reduces_early,
    reduction_terms,
)
from advisor.memory.layer_ends import (
    TIED,
    embedding_bytes,
    first_layers,
    layer_terms,
    passed_gradients,
    while_multiplying,
)
from advisor.memory.ledger import Phase, Term
from advisor.memory.model import autocast_terms
from advisor.memory.offloading import brought_back_terms
from advisor.memory.optimizers import optimizer_named
from advisor.memory.towers import backward_terms, tower_terms, used_towers
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture, Block
from advisor.run import Fsdp, Run, Zero


def backward_phases(
    run: Run, model: Architecture, weights: Weights, fixed: tuple[Term, ...], unpacked: tuple[Term, ...]
) -> list[Phase]:
    """Backward at its ends: the last layer, with all activations; the first, with all gradients; and behind that.

    Autocast's copies of weights go with the layers that kept them.

    Towers, which compute first, have their backward last.
    """
    buckets = bucket_terms(run)
    reducing = flattened_terms(run, weights) if reduces_early(run) else ()
    waiting = fsdp.waiting_head(run, model, weights)
    kept, seen = kept_terms(run, model, backward=True), tower_terms(run, model)
    first_given = first_gradients(run, weights)
    sharded = isinstance(run.sharding, Fsdp)
    all_given = fsdp.gradients_of_layers(run, model, weights) if sharded else gradient_terms(run, weights)
    held = fsdp.held_inputs(run, model)
    end = (
        *embedding_gradients(run, model, weights),
        *_arrived_gradient(run, model, weights),
        *fsdp.root_gradients(run, model, weights),
    )

    def busy(block: Block, when: Literal["layer", "first layer"]) -> tuple[Term, ...]:
        """What else there is while such a layer is at work."""
        return (
            *autocast_terms(run, model, weights, when),
            *buckets,
            *reducing,
            *while_multiplying(run, block, unpacked),
            *brought_back_terms(run, model, block),
            *fsdp.layer_gradients(run, model, weights),
            *waiting,
            *gathered_terms(run, model, weights, when),
        )

    moments = [
        (
            *first_given,
            *passed_gradients(run, model, weights, last),
            *kept_terms(run, model, backward=True, until=last),
            *head_gradient(run, model),
            *layer_terms(run, block),
            *busy(block, "layer"),
        )
        for block, _, last in model.reach
    ]
    moments += [(*at_work, *seen, *busy(block, "first layer")) for block, at_work in first_layers(run, model, weights)]
    moments += [
        (
            *all_given,
            *end,
            *held,
            *seen,
            *buckets,
            *reducing,
            *gathered_terms(run, model, weights, "end of backward"),
        ),
        *(
            (
                *all_given,
                *held,
                *tower_terms(run, model, tower.kind),
                *backward_terms(run, model, tower),
                *buckets,
                *reducing,
                *gathered_terms(run, model, weights, "end of backward"),
            )
            for tower in used_towers(run, model)
        ),
    ]
    if normed := _final_norm_terms(run, model):
        copies = autocast_terms(run, model, weights, "layer")
        moments.append((*first_given, *kept, *head_gradient(run, model), *copies, *normed))
    if done := fsdp.layer_gradients(run, model, weights, done=True):
        moments.append((*first_given, *kept, *done, *waiting, *gathered_terms(run, model, weights, "layer done")))
        moments.append(
            (*all_given, *held, *seen, *done, *waiting, *gathered_terms(run, model, weights, "first layer done"))
        )
    if overflow := overflow_terms(run, weights):
        moments.append((*buckets, *between_micro_steps(run, weights), *kept, *overflow))
    if run.zero_stage == 1 and not reduces_early(run):
        moments.append((*reduction_terms(run, weights), *buckets, *flattened_terms(run, weights)))
    return [Phase("backward", (*fixed, *moment)) for moment in moments]


def _final_norm_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The backward of the final norm, while every layer's activations are there: its input and gradients in fp32.

    As wide as the last layer's own moments where an MLP is narrow: models/llama, LlamaRMSNorm.forward@5.16.1.
    """
    if run.sharding is not None or model.blocks[-1].norm != "rms" or run.liger:
        return ()
    bytes_ = (4 + 5 * 4) * run.tokens * model.hidden_size
    return (
        Term(
            "final norm's gradients",
            "activations",
            bytes_,
            f"24 B x {run.tokens:,} tokens x {model.hidden_size:,}",
            WORKING,
        ),
    )


def first_gradients(run: Run, weights: Weights) -> tuple[Term, ...]:
    """Gradients while all activations are there. Stages 1 and 2 make the whole shard once a part of it is reduced."""
    match run.sharding:
        case Zero(stage=1, offload_optimizer="gpu", overlap_comm=True) if run.gradient_accumulation_steps > 1:
            return reduction_terms(run, weights)
        case Zero(stage=1 | 2, offload_optimizer="gpu") if reduces_early(run):
            return gradient_terms(run, weights)
        case _:
            return between_micro_steps(run, weights)


def embedding_gradients(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """What the embedding's gradient takes besides all gradients: tied to the head, that one, its own and their sum.

    The sum goes into the head's gradient where that is no view: a fused loss makes it, or autocast's cast does.
    """
    consumed = run.sharding is None and optimizer_named(run.optimizer).fused_backward
    if isinstance(run.sharding, Fsdp) or run.zero_stage == 3 or consumed:
        return ()
    bytes_ = embedding_bytes(run, weights)
    accumulated = run.gradient_accumulation_steps > 1 or reduces_early(run)
    fresh = run.loss in {"cut", "liger-fused"} or (run.embeddings_fp32 and run.autocast)
    copies = (0 if not model.tied else 1 if fresh else 2) + (1 if accumulated else 0)
    text = f"{bytes_:,} B x {copies}"
    return (Term("embedding's gradient", "gradients", copies * bytes_, text, TIED),)


def _arrived_gradient(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The gradient of what a trained embedding gave, which is there while its own is made; on one GPU."""
    if run.sharding is not None or not embedding_bytes(run, weights):
        return ()
    bytes_ = checkpoint_bytes(run, model.in_order[0])
    return (Term("gradient of the embedding's output", "activations", bytes_, f"{run.tokens:,} tokens", WORKING),)


def head_gradient(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The head's gradient exists before any layer's; buckets hold it where DeepSpeed reduces."""
    waits = cuts_units(run)  # fsdp.waiting_head has it
    if isinstance(run.sharding, Zero) or waits or not run.full_finetune or run.gradient_accumulation_steps > 1:
        return ()
    elements = model.outputs * model.hidden_size
    width = 4 if run.embeddings_fp32 else 2
    return (Term("head gradient", "gradients", width * elements, f"{width} B x {elements:,}", SAVED),)
