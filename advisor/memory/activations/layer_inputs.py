"""Token embeddings of each layer's own, which a gate takes in at the end of the layer.

models/gemma4/modeling_gemma4.py, Gemma4TextDecoderLayer.forward, Gemma4TextModel.project_per_layer_inputs@5.16.1; the
same in models/gemma3n.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.altup import between_streams, streams
from advisor.memory.activations.amounts import ONE, Amount
from advisor.memory.activations.dtypes import Numbers
from advisor.memory.lora_targets import is_target
from advisor.models.blocks import LinearShape

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.run import Run

PROJECTION = "per_layer_model_projection"


def width_of(block: Block) -> int:
    """Elements of the embedding that a layer takes in; 0 if it takes none."""
    return next((one.n_in for one in block.linears if one.name == "per_layer_projection"), 0)


def _needs_gradient(run: Run, block: Block) -> bool:
    """Whether backward goes into the embeddings of layers, which are added to a projection of the token's own.

    So it does where a gradient of the token's embedding is asked for.
    """
    if run.adapter is None or run.asks_for_gradients:
        return True
    width = layers_of(run) * width_of(block)
    return run.lora is not None and is_target(run.lora, LinearShape(PROJECTION, block.hidden, width, "other"))


def layers_of(run: Run) -> int:
    """Layers of the run's model."""
    return 0 if run.model is None else run.model.layers


def gate_amounts(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """What the gate keeps: itself before its activation, and after it where the embedding gets a gradient."""
    if width := width_of(block):
        yield n.compute * width * (2 if _needs_gradient(run, block) else 1), ONE


def outside_amounts(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """What the embeddings of all layers keep: themselves, and the norm of the projection that they are added to.

    Checkpoints hold the keys and values that layers share, as arguments.
    """
    width, layers = width_of(block), layers_of(run)
    yield from between_streams(n, block, entered=_needs_gradient(run, block))
    if run.activation_checkpointing:
        yield n.compute * shared_width(run), ONE
    if not width:
        return
    yield n.compute * layers * width, ONE
    if _needs_gradient(run, block):
        yield layers * (4 * width + 8), ONE
    if n.trained:
        yield 4 * layers * width, ONE
        # A checkpoint keeps the token's own embedding as the first layer's input, and so does the first of streams.
        yield 0 if run.activation_checkpointing or streams(block) > 1 else n.compute, "h"


def waiting_gradients(run: Run, n: Numbers, block: Block) -> Iterator[Amount]:
    """Gradients that wait for the end of the backward, or for another layer's.

    One of all layers' embeddings; and in layers without keys and values of their own, one of each kind that they share.
    """
    width = width_of(block)
    if width and _needs_gradient(run, block):
        yield n.compute * layers_of(run) * width, ONE
    if block.attention is not None and not block.attention.own_keys:
        yield n.compute * shared_width(run), ONE


def shared_width(run: Run) -> int:
    """Elements of the keys and values that layers share: those of one layer of each kind."""
    mixers = [block.attention for block in run.model.blocks] if run.model is not None else []
    shared = [one for one in mixers if one is not None and not one.own_keys]
    return sum({one.window: one.key_width + one.value_width for one in shared}.values())
