"""The forward pass at its end, in training and in evaluation: what is kept for backward, and the loss."""

from advisor.memory import loss
from advisor.memory.activations import (
    cached_bytes,
    checkpoint_bytes,
    checkpoints,
    first_norm_bytes,
    forward_peak_bytes,
    head_saved_bytes,
    lasting_bytes,
    no_grad_peak_bytes,
    own_input_bytes,
    saved_bytes,
    saved_formula,
)
from advisor.memory.activations.altup import streams
from advisor.memory.deepspeed import buckets_at_loss, gathered_terms, lasting_buckets
from advisor.memory.fsdp import root_copied
from advisor.memory.generation import generation_terms
from advisor.memory.ledger import Phase, Term
from advisor.memory.offloading import inputs_on_the_way
from advisor.memory.projector import INT8
from advisor.memory.towers import forward_terms, tower_terms, used_towers
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture, Block
from advisor.models.family import family_of
from advisor.record import replace
from advisor.run import Run

CHECKPOINTS = "torch/utils/checkpoint.py: only a layer's input is kept (arXiv 1604.06174)"
CACHE = "models/gpt_bigcode/modeling_gpt_bigcode.py:912-950@4.48.1: use_cache stays on under checkpoints"
SAVED = "autograd's saved tensors, traced from the transformers modules"
WORKING = "gradients of a layer's intermediates, traced from the transformers modules"


def loss_phases(
    run: Run, model: Architecture, weights: Weights, fixed: tuple[Term, ...], late: tuple[Term, ...]
) -> list[Phase]:
    """The loss at its largest moments: at the end of forward, over ``fixed``; when backward starts, over ``late``."""
    by_layers = kept_terms(run, model)
    kept = (
        *by_layers,
        Term("final norm", "activations", head_saved_bytes(run, model), norm_text(run, model), SAVED),
    )
    ended = gathered_terms(run, model, weights, "end of forward")
    starts = gathered_terms(run, model, weights, "start of backward")
    forward = _loss_term(run, model, loss.loss_forward_peak_bytes(run, model))
    backward = _loss_term(run, model, loss.loss_backward_peak_bytes(run, model))
    # TRL's loss of preferences comes when the model has returned, and autocast and the head's input are gone; so does
    # the fp32 copy of the logits, where Liger's loss itself takes less.
    returned = loss.kind(run) == "preference" or (loss.kind(run) == "liger" and run.autocast)
    inside = late if returned else (*fixed, *_read_by_head(run, model))
    moments = [
        (*inside, *kept, *_cached_terms(run, model), *ended, forward, *lasting_buckets(run)),
        (*late, *kept, *starts, backward, *buckets_at_loss(run)),
    ]
    moments.append((*fixed, *by_layers, *_passing_terms(run, model)))
    moments += [(*fixed, *tower_terms(run, model), *forward_terms(run, one)) for one in used_towers(run, model)]
    if copied := root_copied(run, model, forward=True):
        moments.append((*fixed, *copied))
    if copied := root_copied(run, model, forward=False):
        moments.append((*late, *kept, *copied, _loss_term(run, model, loss.loss_saved_bytes(run, model))))
    return [Phase("forward and loss", moment) for moment in moments]


def _cached_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Keys and values that checkpointed layers hand back, until the trainer lets go of the model's outputs."""
    bytes_ = sum(block.count * cached_bytes(run, block) for block in model.blocks) if checkpoints(run) else 0
    return (Term("cached keys and values", "activations", bytes_, f"{run.tokens:,} tokens", CACHE),) if bytes_ else ()


def _passing_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """What the last layer's forward holds and does not save: wider than a fused loss where adapters are in fp32."""
    bytes_ = forward_peak_bytes(run, model.in_order[-1]) if model.blocks else 0
    return (Term("last layer's intermediates", "activations", bytes_, f"{run.tokens:,} tokens", WORKING),)


def _read_by_head(run: Run, model: Architecture) -> tuple[Term, ...]:
    """What the head reads lives until the forward returns, even where backward does not need it."""
    if loss.head_is_trained(run) and run.loss != "liger-fused":
        return ()
    width, tokens = run.compute_bytes * model.hidden_size, loss.scored_tokens(run)
    return (Term("head's input", "activations", width * tokens, f"{width:,} B x {tokens:,} tokens", SAVED),)


def _loss_term(run: Run, model: Architecture, bytes_: int) -> Term:
    """The logits and all that the loss makes of them."""
    tokens = loss.scored_tokens(run)
    width = bytes_ / max(1, tokens * model.outputs)
    text = f"{width:.4g} B x {tokens:,} tokens x {_outputs_text(model)}"
    return Term(f"logits and {run.loss} loss", "loss", bytes_, text, loss.SOURCE)


def _outputs_text(model: Architecture) -> str:
    """How many numbers the head gives for each token, and of what."""
    return f"{model.classes} classes" if model.classes else f"{model.vocab_size:,} vocabulary"


def norm_text(run: Run, model: Architecture) -> str:
    """What the final norm keeps is counted over."""
    return f"{run.tokens:,} tokens x {model.hidden_size:,}"


def kept_terms(run: Run, model: Architecture, *, backward: bool = False, until: int | None = None) -> tuple[Term, ...]:
    """What the layers keep from forward to backward: the decoder's, up to that number, and those of towers."""
    return (*decoder_terms(run, model, backward=backward, until=until), *tower_terms(run, model))


def decoder_terms(run: Run, model: Architecture, *, backward: bool, until: int | None = None) -> tuple[Term, ...]:
    """What the decoder layers keep, at the end of forward or in backward, when that has come to a layer."""
    blocks = left(model, until)
    if not checkpoints(run):
        unread = _unread_norm_bytes(run, model)
        return (*(_saved_term(run, *one, 0 if i else unread) for i, one in enumerate(blocks)), *_leaf_terms(run, model))
    if run.activation_offloading is not None:
        return (inputs_on_the_way(run, model, backward=backward), *_lasting_terms(run, model, blocks))
    return (*(_input_term(run, *one) for one in blocks), *_lasting_terms(run, model, blocks))


def left(model: Architecture, until: int | None) -> tuple[tuple[Block, int], ...]:
    """How many layers of each kind backward has not passed when it comes to a layer, by number."""
    if until is None:
        return tuple((block, block.count) for block in model.blocks)
    ahead = model.in_order[: until + 1]
    return tuple((block, sum(one is block for one in ahead)) for block in model.blocks)


def _saved_term(run: Run, block: Block, count: int, unread: int) -> Term:
    """What layers of one shape keep; the first norm of the first may keep less."""
    text = _layers_text(run, block, count) + (f", less {unread:,} B of the first norm" if unread else "")
    return Term("activations", "activations", count * saved_bytes(run, block) - unread, text, SAVED)


def _input_term(run: Run, block: Block, count: int) -> Term:
    """The inputs of layers of one shape."""
    one = checkpoint_bytes(run, block)
    return Term("checkpointed layer inputs", "activations", count * one, f"{one:,} B x {count} layers", CHECKPOINTS)


def _unread_norm_bytes(run: Run, model: Architecture) -> int:
    """What the first norm would keep if a frozen embedding's output needed a gradient."""
    lora = run.lora
    if lora is None or lora.modules_to_save or run.unfrozen_parameters:
        return 0
    if run.asks_for_gradients or run.sharding is not None:
        return 0
    return first_norm_bytes(run, model.blocks[0])


def _lasting_terms(run: Run, model: Architecture, blocks: tuple[tuple[Block, int], ...]) -> tuple[Term, ...]:
    """Inputs of 8-bit linears, which a non-reentrant checkpoint leaves where they are, and a leaf in front of all."""
    inputs = tuple(
        Term(
            "inputs of 8-bit layers",
            "activations",
            count * lasting_bytes(run, block),
            f"{lasting_bytes(run, block):,} B x {count} layers",
            INT8,
        )
        for block, count in blocks
        if lasting_bytes(run, block)
    )
    return (*inputs, *_leaf_terms(run, model))


def _leaf_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """A frozen embedding's output that was made to need a gradient lives as long as the graph.

    It is the first layer's input, which a checkpoint keeps, and a norm that casts nothing; unless the model multiplies
    it first (GraniteModel.forward@5.16.1) or makes several streams of it. With images it is ``words_term``.
    """
    if used_towers(run, model):
        return ()
    family = family_of(model.decoder_type or model.model_type)
    multiplied = family is not None and family.tape.scales_embedding == "after"
    first = model.blocks[0]
    kept = streams(first) == 1 and (checkpoints(run) or own_input_bytes(run, first) > 0)
    if run.lora is None or run.lora.modules_to_save or not run.asks_for_gradients or (kept and not multiplied):
        return ()
    width = model.hidden_size * run.compute_bytes
    return (
        Term("embedding's output", "activations", width * run.tokens, f"{width:,} B x {run.tokens:,} tokens", SAVED),
    )


def _layers_text(run: Run, block: Block, count: int) -> str:
    """How much layers of one shape keep."""
    return f"{saved_formula(run, block)} x {run.tokens:,} tokens x {count} layers"


def evaluation_phases(run: Run, model: Architecture, weights: Weights, fixed: tuple[Term, ...]) -> list[Phase]:
    """The moments of evaluation: scoring, and generating where that is asked for."""
    seen = replace(run, micro_batch_size=run.eval_batch_size)
    moments = [_evaluation_terms(run, model, weights)]
    moments += [forward_terms(seen, tower) for tower in used_towers(run, model)]
    if run.generated_rows:
        moments.append(generation_terms(run, model, weights))
    return [Phase("evaluation", (*fixed, *moment)) for moment in moments]


def _evaluation_terms(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """A forward without gradients: one layer's intermediates, and after the last layer the logits."""
    evaluated = replace(run, micro_batch_size=run.eval_batch_size, sequence_len=run.eval_sequence_len)
    working = max(no_grad_peak_bytes(evaluated, block) for block in model.blocks)
    logits = loss.evaluation_loss_bytes(evaluated, model)
    gathered = gathered_terms(run, model, weights, "end of forward")
    tokens = f"{evaluated.tokens:,} tokens ({run.eval_batch_size} rows of {run.eval_sequence_len:,})"
    if working > logits:
        gathered = gathered_terms(run, model, weights, "evaluation")
        return (Term("one layer's intermediates", "activations", working, tokens, WORKING), *gathered)
    width = run.compute_bytes * model.hidden_size
    text = f"{tokens} x {_outputs_text(model)}"
    return (
        Term("head's input", "activations", width * evaluated.tokens, f"{width:,} B x {tokens}", SAVED),
        Term("evaluation logits", "loss", logits, text, loss.SOURCE),
        *gathered,
    )
