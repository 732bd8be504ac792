"""The forward pass at its end, in training and in evaluation: what is kept for backward, and the loss."""

from dataclasses import replace

from advisor.memory import loss
from advisor.memory.activations import (
    checkpoint_bytes,
    forward_working_bytes,
    head_saved_bytes,
    saved_bytes,
    saved_formula,
)
from advisor.memory.ledger import Term
from advisor.memory.sharding import gathered_terms
from advisor.models import Architecture, Block
from advisor.run import Run

CHECKPOINTS = "torch/utils/checkpoint.py: only a layer's input is kept (arXiv 1604.06174)"
SAVED = "autograd's saved tensors, traced from the transformers modules"
WORKING = "gradients of a layer's intermediates, traced from the transformers modules"


def forward_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """The end of forward: all that is kept for backward, and the loss at its largest."""
    head = head_saved_bytes(run, model)
    forward = loss.loss_forward_peak_bytes(run, model)
    backward = loss.loss_backward_peak_bytes(run, model)
    peak = max(forward, backward)
    text = (
        f"{peak / max(1, run.tokens * model.vocab_size):.4g} B x {run.tokens:,} tokens x {model.vocab_size:,} "
        f"vocabulary"
    )
    return (
        *kept_terms(run, model),
        Term("final norm", "activations", head, f"{run.tokens:,} tokens x {model.hidden_size:,}", SAVED),
        Term(f"logits and {run.loss} loss", "loss", peak, text, loss.SOURCE),
        *gathered_terms(run, model, head_only=True),
    )


def kept_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """What the decoder layers keep from forward to backward."""
    if not checkpoints(run):
        return tuple(
            Term(
                "activations",
                "activations",
                block.count * saved_bytes(run, block),
                layers_text(run, block),
                SAVED,
            )
            for block in model.blocks
        )
    if run.activation_offloading is not None:
        kept = 5 if run.activation_offloading == "saved-tensors" else 2
        return (offloaded_inputs(run, model, kept),)
    return tuple(
        Term(
            "checkpointed layer inputs",
            "activations",
            block.count * checkpoint_bytes(run, block),
            f"{checkpoint_bytes(run, block):,} B x {block.count} layers",
            CHECKPOINTS,
        )
        for block in model.blocks
    )


def offloaded_inputs(run: Run, model: Architecture, kept: int) -> Term:
    """The few layer inputs that are still on the GPU while the rest travels."""
    one = max(checkpoint_bytes(run, block) for block in model.blocks)
    count = min(kept, model.layers)
    source = "trl/models/activation_offloading.py@1.9.0: at most five tensors in flight"
    return Term("layer inputs on their way to the host", "activations", count * one, f"{one:,} B x {count}", source)


def layers_text(run: Run, block: Block) -> str:
    """How much the layers of one shape keep."""
    return f"{saved_formula(run, block)} x {run.tokens:,} tokens x {block.count} layers"


def checkpoints(run: Run) -> bool:
    """Whether only layer inputs are kept: by the trainer's checkpointing or FSDP's."""
    return run.activation_checkpointing or (run.fsdp is not None and run.fsdp.activation_checkpointing)


def evaluation_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """A forward without gradients, whose logits are materialised."""
    evaluated = replace(run, micro_batch_size=run.eval_batch_size, sequence_len=run.eval_sequence_len)
    working = max(forward_working_bytes(evaluated, block) for block in model.blocks)
    logits = loss.evaluation_loss_bytes(evaluated, model)
    return (
        Term("one layer's intermediates", "activations", working, f"{evaluated.tokens:,} tokens", WORKING),
        Term(
            "evaluation logits",
            "loss",
            logits,
            f"{evaluated.tokens:,} tokens x {model.vocab_size:,} vocabulary",
            loss.SOURCE,
        ),
        *gathered_terms(run, model, head_only=True),
    )
