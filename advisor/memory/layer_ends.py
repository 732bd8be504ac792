"""A layer's backward where it is the last of its kind, with most activations, or the first, with most gradients."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from advisor.memory import fsdp
from advisor.memory.activations import (
    backward_peak_bytes,
    checkpoint_bytes,
    checkpoints,
    dequantized_peak_bytes,
    last_weight_bytes,
    own_input_bytes,
    saved_bytes,
    saved_formula,
    stack_gradient_bytes,
)
from advisor.memory.activations.attention import is_plain
from advisor.memory.activations.experts import stacks
from advisor.memory.activations.variant_and_norm import family_and_norm
from advisor.memory.ebft import one_graph
from advisor.memory.forward import SAVED, WORKING, decoder_terms
from advisor.memory.gradients import gradient_terms
from advisor.memory.ledger import Term
from advisor.memory.lora_targets import stacked
from advisor.memory.offloading import passing_working, recomputes_under_hooks
from advisor.memory.optimizers import optimizer_named
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture, Block
from advisor.record import replace
from advisor.run import Fsdp, Run, Zero

TIED = "torch/csrc/autograd/input_buffer.cpp: gradients of one tensor are summed before they are accumulated"


def passed_gradients(run: Run, model: Architecture, weights: Weights, last: int) -> tuple[Term, ...]:
    """Gradients of the layers that backward has passed, and of what it has of this one at its widest moment."""
    block, later = model.in_order[last], model.in_order[last + 1 :]
    own = (block.parameters - _late_elements(run, block)) * layer_width(run, weights)
    bytes_ = _gradients_of(run, model, weights, later) + round(own)
    return (
        Term("gradients of later layers", "gradients", bytes_, f"of {len(later)} layers, and the last linear", SAVED),
    )


def first_layers(run: Run, model: Architecture, weights: Weights) -> Iterator[tuple[Block, tuple[Term, ...]]]:
    """The first layer of each kind, at work with all gradients of those after it: itself, and what there is by then.

    Sharded runs have their gradients elsewhere: there it is the widest layer, as if it were the first of all.
    """
    if run.sharding is not None:
        widest = max(model.blocks, key=lambda block: saved_bytes(run, block) + backward_peak_bytes(run, block))
        kept = fsdp.held_inputs(run, model) or _first_layer_terms(run, widest)
        yield widest, (*_all_gradients(run, model, weights), *kept, *layer_terms(run, widest))
        return
    for block, first, _ in model.reach:
        kept = decoder_terms(run, model, backward=True, until=first)
        before, width = _gradients_of(run, model, weights, model.in_order[:first]), layer_width(run, weights)
        late = _late_elements(run, block) * width if width else _gradients_of(run, model, weights, (block,))
        yield block, (*_gradients_but(run, model, weights, before + late), *kept, *layer_terms(run, block))
        if _makes_stacks(run) and stacks(block):
            given = _gradients_but(run, model, weights, before + _attention_elements(block) * width)
            yield block, (*given, *kept, *_recomputed_terms(run, block), *_stack_terms(run, block))


def _all_gradients(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """Gradients while the first layer is at work, where none is left out."""
    if isinstance(run.sharding, Fsdp):
        return fsdp.gradients_of_layers(run, model, weights)
    return (*gradient_terms(run, weights), *waiting_head(run, model, weights))


def _gradients_but(run: Run, model: Architecture, weights: Weights, late: float) -> tuple[Term, ...]:
    """All gradients but the embedding's, and so many bytes of those that the first layers make last."""
    found = _all_gradients(run, model, weights)
    embedding = 0 if model.tied or not _makes_gradients(run) else embedding_bytes(run, weights)
    later = round(embedding + late)
    if not later:
        return found
    text = f"{found[0].formula}, less {later:,} B of the embedding and of what the first layers make last"
    return (replace(found[0], bytes=max(0, found[0].bytes - later), formula=text), *found[1:])


def _makes_gradients(run: Run) -> bool:
    """Whether backward makes gradients that were not there before, and that all stay, on one GPU."""
    kept = run.gradient_accumulation_steps > 1 or optimizer_named(run.optimizer).fused_backward
    return run.sharding is None and not kept


def _gradients_of(run: Run, model: Architecture, weights: Weights, layers: Sequence[Block]) -> int:
    """Bytes of the gradients that these layers make; an adapter's are taken for the same in every layer."""
    if run.adapter is None:
        return round(layer_width(run, weights) * sum(block.parameters for block in layers))
    adapters = sum(group.bytes for group in weights.trained if group.name == "adapter")
    return adapters * len(layers) // model.layers if _makes_gradients(run) else 0


def layer_width(run: Run, weights: Weights) -> float:
    """Bytes per element of the gradients of layers, where all their weights are trained; else 0."""
    if not _makes_gradients(run) or run.adapter is not None or run.unfrozen_parameters:
        return 0
    return next((group.width for group in weights.trained if group.name == "layers" and group.matrix_elements), 0)


def _late_elements(run: Run, block: Block) -> int:
    """Elements of a layer whose gradients come after its widest moment.

    Of an MLP's backward that is at the product, after its last linear, or at a norm before that; attention's
    probabilities come after the MLP.
    """
    if family_and_norm(run, block)[0].post_norm:
        return block.parameters
    if block.mlp is None or block.states is not None or block.traces or is_plain(run):
        return _attention_elements(block, all_but_last=True)
    if block.mlp.experts:
        return _attention_elements(block) + (sum(stacks(block).values()) if _makes_stacks(run) else 0)
    return block.parameters - last_weight_bytes(block) // 2


def _attention_elements(block: Block, *, all_but_last: bool = False) -> int:
    """Elements of the linears of attention, whose last is at its end."""
    linears = [linear for linear in block.linears if linear.kind == "attention"]
    return sum(linear.n_in * linear.n_out for linear in (linears[:-1] if all_but_last else linears))


def _makes_stacks(run: Run) -> bool:
    """Whether the gradients of experts are as large as all of them: integrations/moe.py, grouped_mm_experts_forward."""
    return run.adapter is None and run.experts == "grouped_mm" and not is_plain(run) and stacked(run)


def _stack_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """The moment of the gradient of experts' first stack, the largest of a layer."""
    bytes_ = stack_gradient_bytes(run, block)
    return (Term("gradients of intermediates", "activations", bytes_, f"{run.tokens:,} tokens", WORKING),)


def waiting_head(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """A tied head's new gradient, which waits for the embedding's while the old ones are kept."""
    bytes_ = embedding_bytes(run, weights) if model.tied and run.gradient_accumulation_steps > 1 else 0
    return (Term("tied head's gradient", "gradients", bytes_, f"{bytes_:,} B", TIED),) if bytes_ else ()


def embedding_bytes(run: Run, weights: Weights) -> int:
    """Bytes of the gradient of a trained embedding; 0 if it is frozen."""
    found = [group for group in weights.trained if group.embedding and group.name == "embeddings"]
    width = run.compute_bytes if isinstance(run.sharding, Zero) else None
    return sum(round((width or group.width) * group.elements) for group in found)


@lru_cache(maxsize=16)
def layer_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """One layer's backward: what it recomputes, if it was checkpointed, and the gradients of its intermediates."""
    run = one_graph(run)
    if recomputes_under_hooks(run) and run.activation_offloading == "legacy":
        return (passing_working(run, block),)
    working = Term(
        "gradients of intermediates",
        "activations",
        backward_peak_bytes(run, block),
        f"{run.tokens:,} tokens",
        WORKING,
    )
    return (*_recomputed_terms(run, block), working)


def _recomputed_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """What a checkpointed layer keeps when it is computed again."""
    if not checkpoints(run):
        return ()
    held = own_input_bytes(run, block) if run.activation_offloading is None else 0
    text = f"{saved_formula(run, block)} x {run.tokens:,} tokens"
    text += f", less {held:,} B of its own input" if held else ""
    return (Term("recomputed layer", "activations", saved_bytes(run, block) - held, text, SAVED),)


def _first_layer_terms(run: Run, block: Block) -> tuple[Term, ...]:
    """What is still kept when backward reaches the first layer."""
    kept = checkpoint_bytes(run, block) if checkpoints(run) else saved_bytes(run, block)
    return (Term("first layer's activations", "activations", kept, f"{run.tokens:,} tokens", SAVED),)


def while_multiplying(run: Run, block: Block, unpacked: tuple[Term, ...]) -> tuple[Term, ...]:
    """What an unpacked weight adds to the widest moment of a layer, which need not be the one that it is there in."""
    dequantized = None if recomputes_under_hooks(run) else dequantized_peak_bytes(run, block)
    if dequantized is None:
        return unpacked
    less, weight = max(0, backward_peak_bytes(run, block) - dequantized), last_weight_bytes(block)
    text = f", less {less:,} B that have gone" if less else ""
    return tuple(
        replace(term, bytes=weight - less, formula=f"2 B x {weight // 2:,}{text}") for term in unpacked if weight > less
    )
