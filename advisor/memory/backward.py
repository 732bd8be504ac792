"""Backward at its two ends: the last layer, with all activations, and the first, with all gradients."""

from advisor.memory import fsdp
from advisor.memory.activations import (
    checkpoint_bytes,
    checkpoints,
    last_weight_bytes,
    multiplying_bytes,
    own_input_bytes,
    saved_bytes,
    saved_formula,
    working_bytes,
)
from advisor.memory.activations.experts import expert_width, stacks
from advisor.memory.deepspeed import bucket_terms, flattened_terms, gathered_terms, overflow_terms
from advisor.memory.ebft import one_graph
from advisor.memory.forward import SAVED, WORKING, kept_terms
from advisor.memory.gradients import (
    between_micro_steps,
    gradient_terms,
    reduces_early,
    reduction_terms,
)
from advisor.memory.groups import Weights
from advisor.memory.ledger import Phase, Term
from advisor.memory.lora_targets import stacked
from advisor.memory.model import autocast_terms
from advisor.memory.offloading import brought_back_terms, passing_working, recomputes_under_hooks
from advisor.memory.optimizers import optimizer_named
from advisor.memory.towers import backward_terms, counted, tower_terms
from advisor.models import Architecture, Block
from advisor.record import replace
from advisor.run import Fsdp, Run, Zero

TIED = "torch/csrc/autograd/input_buffer.cpp: gradients of one tensor are summed before they are accumulated"


def backward_phases(
    run: Run, model: Architecture, weights: Weights, fixed: tuple[Term, ...], unpacked: tuple[Term, ...]
) -> list[Phase]:
    """Backward at its ends: the last layer, with all activations; the first, with all gradients; and behind that.

    Autocast's copies of weights go with the layers that kept them.

    Towers, which compute first, have their backward last.
    """
    buckets = bucket_terms(run)
    reducing = flattened_terms(run, weights) if reduces_early(run) else ()
    layer = max(model.blocks, key=lambda block: saved_bytes(run, block) + working_bytes(run, block))
    waiting = fsdp.waiting_head(run, model, weights)
    busy = (
        *buckets,
        *reducing,
        *layer_terms(run, layer),
        *while_multiplying(run, layer, unpacked),
        *brought_back_terms(run, model, layer),
        *fsdp.layer_gradients(run, model, weights),
        *waiting,
    )
    kept, seen = kept_terms(run, model, backward=True), tower_terms(run, model)
    first_given = first_gradients(run, weights)
    sharded = isinstance(run.sharding, Fsdp)
    all_given = fsdp.gradients_of_layers(run, model, weights) if sharded else gradient_terms(run, weights)
    held = fsdp.held_inputs(run, model)
    end = (*embedding_gradients(run, model, weights), *fsdp.root_gradients(run, model, weights))
    moments = [
        (
            *first_given,
            *kept,
            *head_gradient(run, model),
            *autocast_terms(run, model, weights, "layer"),
            *busy,
            *gathered_terms(run, model, weights, "layer"),
        ),
        (
            *last_gradients(run, model, weights, layer),
            *(held or first_layer_terms(run, layer)),
            *autocast_terms(run, model, weights, "first layer"),
            *seen,
            *busy,
            *gathered_terms(run, model, weights, "first layer"),
        ),
        (
            *all_given,
            *end,
            *held,
            *seen,
            *buckets,
            *reducing,
            *gathered_terms(run, model, weights, "end of backward"),
        ),
    ]
    moments += [
        (
            *all_given,
            *held,
            *seen,
            *backward_terms(run, model, tower),
            *buckets,
            *reducing,
            *gathered_terms(run, model, weights, "end of backward"),
        )
        for tower in counted(run, model)
    ]
    if normed := final_norm_terms(run, model):
        moments.append((*first_given, *kept, *autocast_terms(run, model, weights, "layer"), *normed))
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


def final_norm_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The backward of a frozen final norm, while every layer's activations are there: its input and gradients in fp32.

    As wide as the last layer's own moments where an MLP is narrow: models/llama, LlamaRMSNorm.forward@5.16.1.
    """
    if run.sharding is not None or run.adapter is None or model.blocks[-1].norm != "rms" or run.liger:
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


def while_multiplying(run: Run, block: Block, unpacked: tuple[Term, ...]) -> tuple[Term, ...]:
    """What an unpacked weight adds to the widest moment of a layer, which need not be the one that it is there in."""
    multiplying = None if recomputes_under_hooks(run) else multiplying_bytes(run, block)
    if multiplying is None:
        return unpacked
    less, weight = max(0, working_bytes(run, block) - multiplying), last_weight_bytes(block)
    text = f", less {less:,} B that have gone" if less else ""
    return tuple(
        replace(term, bytes=weight - less, formula=f"2 B x {weight // 2:,}{text}") for term in unpacked if weight > less
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


def last_gradients(run: Run, model: Architecture, weights: Weights, layer: Block) -> tuple[Term, ...]:
    """Gradients while the first layer is at work: all but the embedding's, and the layer's last."""
    if isinstance(run.sharding, Fsdp):
        return fsdp.gradients_of_layers(run, model, weights)
    found = gradient_terms(run, weights)
    embedding = 0 if model.tied or run.gradient_accumulation_steps > 1 else embedding_bytes(run, weights)
    if run.sharding is not None or not embedding or len(found) != 1:
        return (*found, *waiting_head(run, model, weights))
    later = embedding + first_inputs_bytes(model, weights) + first_stack_bytes(run, layer)
    text = f"{found[0].formula}, less {later:,} B of the embedding and of what the first layer makes last"
    return (replace(found[0], bytes=max(0, found[0].bytes - later), formula=text),)


def first_stack_bytes(run: Run, layer: Block) -> int:
    """The gradient of experts' first stack, as far as it only takes the place of what their backward holds before.

    Their widest moment is at their outputs: integrations/moe.py, grouped_mm_experts_forward@5.16.1.
    """
    if run.adapter is not None or run.experts != "grouped_mm" or run.attention == "eager" or not stacked(run):
        return 0
    return min(expert_width(run, run.compute_bytes) * stacks(layer).get("up", 0), working_bytes(run, layer))


def first_inputs_bytes(model: Architecture, weights: Weights) -> int:
    """Gradients of the linears that read the first layer's input, the last that its backward makes."""
    layers = [group for group in weights.trained if group.name == "layers" and group.matrix_elements]
    width = layers[0].width if layers else 0
    attention = [linear for linear in model.blocks[0].linears if linear.kind == "attention"]
    return round(width * sum(linear.n_in * linear.n_out for linear in attention[:-1]))


def waiting_head(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """A tied head's new gradient, which waits for the embedding's while the old ones are kept."""
    bytes_ = embedding_bytes(run, weights) if model.tied and run.gradient_accumulation_steps > 1 else 0
    return (Term("tied head's gradient", "gradients", bytes_, f"{bytes_:,} B", TIED),) if bytes_ else ()


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


def embedding_bytes(run: Run, weights: Weights) -> int:
    """Bytes of the gradient of a trained embedding; 0 if it is frozen."""
    found = [group for group in weights.trained if group.embedding and group.name == "embeddings"]
    width = run.compute_bytes if isinstance(run.sharding, Zero) else None
    return sum(round((width or group.width) * group.elements) for group in found)


def layer_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """One layer's backward: what it recomputes, if it was checkpointed, and the gradients of its intermediates."""
    run = one_graph(run)
    if recomputes_under_hooks(run) and run.activation_offloading == "legacy":
        return (passing_working(run, block),)
    working = Term(
        "gradients of intermediates",
        "activations",
        working_bytes(run, block),
        f"{run.tokens:,} tokens",
        WORKING,
    )
    if not checkpoints(run):
        return (working,)
    held = own_input_bytes(run, block) if run.activation_offloading is None else 0
    text = f"{saved_formula(run, block)} x {run.tokens:,} tokens"
    return (
        Term(
            "recomputed layer",
            "activations",
            saved_bytes(run, block) - held,
            text + (f", less {held:,} B of its own input" if held else ""),
            SAVED,
        ),
        working,
    )


def first_layer_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """What is still kept when backward reaches the first layer."""
    kept = checkpoint_bytes(run, block) if checkpoints(run) else saved_bytes(run, block)
    return (Term("first layer's activations", "activations", kept, f"{run.tokens:,} tokens", SAVED),)


def head_gradient(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The head's gradient exists before any layer's; buckets hold it where DeepSpeed reduces."""
    waits = isinstance(run.sharding, Fsdp) and run.world_size > 1  # fsdp.waiting_head has it
    if isinstance(run.sharding, Zero) or waits or not run.full_finetune or run.gradient_accumulation_steps > 1:
        return ()
    elements = model.outputs * model.hidden_size
    width = 4 if run.embeddings_fp32 else 2
    return (Term("head gradient", "gradients", width * elements, f"{width} B x {elements:,}", SAVED),)
