"""What autocast makes of frozen fp32 weights: its cache takes trained leaves alone, the graph keeps what it saved."""

from typing import Literal

from advisor.memory.ledger import Term
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture
from advisor.run import Run

Moment = Literal["forward", "loss", "layer", "first layer", "evaluation"]
"""Forward, the start of the loss's backward, and the backward of a layer; and a forward without gradients."""
SAVED_CASTS = (
    "aten/src/ATen/autocast_mode.cpp, cached_cast@2.13.0: only leaves that need gradients are cached; "
    "a linear layer saves the weight that it multiplied with, for its input's gradient"
)


def frozen_casts(run: Run, model: Architecture, weights: Weights, when: Moment) -> tuple[Term, ...]:
    """bf16 copies of frozen fp32 weights, which live until their layer's backward.

    Grouped products of experts are blind to autocast. Of checkpointed layers one is at work; the head, outside of
    them, has gone when its own backward has. Without gradients one copy comes after another.
    """
    inside, head = frozen_elements(model, weights)
    match when:
        case "evaluation":
            inside = 0
        case "forward" | "loss":
            inside = 0 if run.activation_checkpointing else inside
        case "layer":
            inside, head = -(-inside // model.layers) if run.activation_checkpointing else inside, 0
        case "first layer":
            inside, head = -(-inside // model.layers), 0
    elements = inside + head
    if not elements:
        return ()
    return (Term("copies of frozen weights", "overhead", 2 * elements, f"2 B x {elements:,} in fp32", SAVED_CASTS),)


def frozen_elements(model: Architecture, weights: Weights) -> tuple[int, int]:
    """Elements of frozen fp32 weights that enter a product under autocast: of the layers, and of the head."""
    wide = {group.name: group for group in weights.frozen if group.width == 4}
    head = wide.get("embeddings" if model.tied else "head")
    layers = wide.get("layers")
    return (layers.matrix_elements if layers else 0), (head.matrix_elements if head else 0)
