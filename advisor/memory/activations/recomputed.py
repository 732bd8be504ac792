"""What a forward holds at the MLP's last linear and does not keep, of a layer computed again or of the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.memory.activations.adapted_output import adapted_outputs
from advisor.memory.activations.altup import streams
from advisor.memory.activations.amounts import ONE, Amount, freed
from advisor.memory.activations.dtypes import Adapters, Numbers
from advisor.memory.activations.layer import own_input_bytes
from advisor.memory.activations.linear_inputs import mlp_output
from advisor.memory.activations.norms import rms_amounts
from advisor.memory.activations.variant_and_norm import family_and_norm

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.models.layer_variant import LayerVariant
    from advisor.run import Run


def recomputed_forward(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """The recomputed forward at an fp32 adapter of the down projection, at times wider than the backward.

    The gradient that waits, the residual, the normed input, the base's result, and of the product itself, its fp32
    copy and that after dropout, none of which is saved; without dropout, later: the adapter's result, and that scaled.
    """
    held = tuple(at_last_linear(run, n, family, block))
    for site, kept in adapted_outputs(run, n, block):
        if kept.cast > n.compute and kept.width == n.compute:
            yield from (*held, (n.inner + passing_results(run, n, kept), "h"))
            product = 0 if run.quantization == "int8" else site.source  # which keeps its inputs
            casts = (kept.cast != site.source) + kept.dropout
            yield product + kept.cast * casts, site.symbol
        elif kept.own and kept.cast == n.compute and run.activation_checkpointing:
            # The base's result, the adapter's and that scaled; dropout's copies are saved in place of what it reads.
            yield from (*held, (3 * n.compute, "h"))
            if run.quantization == "int8":  # which keeps its inputs
                yield -n.normed, "h"
            else:
                yield n.inner, site.symbol


def passing_results(run: Run, n: Numbers, kept: Adapters) -> int:
    """Bytes per element of the stream that are there of the adapter's own output, at the widest moment before its sum.

    Its product and that scaled; with dropout that moment is before both. A non-reentrant checkpoint computes no more
    than what is saved, and backward has scaled the output's gradient by then.
    """
    if run.activation_checkpointing and not run.reentrant:
        return n.compute
    return 0 if kept.dropout else 2 * n.compute


def recomputed_four_bit(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """The recomputed forward at a 4-bit last linear without adapters, whose input and output are in fp32.

    The gradient that waits, the residual, the normed input; the product and the result, and both in half precision:
    bitsandbytes/nn/modules.py, Linear4bit.forward@0.50.2.
    """
    adapted = {site.symbol for site, _ in adapted_outputs(run, n, block)}
    if run.quantization != "nf4" or n.inner == n.compute or not run.activation_checkpointing:
        return
    for site in mlp_output(run, n, block):
        if site.symbol not in adapted:
            yield from at_last_linear(run, n, family, block)
            yield from ((n.compute + n.inner, "h"), (n.inner + n.compute, site.symbol))


def at_last_linear(run: Run, n: Numbers, family: LayerVariant, block: Block) -> Iterator[Amount]:
    """What waits at the MLP's last linear, and what it was given, less the norm behind it, which keeps nothing yet."""
    yield waiting(run, n, family, block) - yet_to_come(run, n) + (0 if family.post_norm else n.normed), "h"
    if family.post_norm or block.norms >= 4:
        yield from freed(rms_amounts(n, family_and_norm(run, block)[1], "h", ONE))


def waiting(run: Run, n: Numbers, family: LayerVariant, block: Block) -> int:
    """Bytes per element of the stream that a layer has beyond what it keeps when it comes to the MLP, in a forward.

    Its input, or where it is computed again, whose input is kept, the gradient that waits for it; and the residual, or
    where both branches read the stream, what attention gave. Norms that cast nothing keep both. A scaled branch has a
    name (models/internvl, InternVLVisionLayer.forward@5.16.1).
    """
    cast = n.stream if not own_input_bytes(run, block) else 0
    first = (n.returned if run.activation_checkpointing else cast) + (n.stream if family.branch_scales else 0)
    if run.model is not None and run.model.family.tape.holds:
        first += n.normed + n.compute  # what the norm gave attention, and what attention gave
    if family.parallel or block.norms == 1:
        return first + (n.compute if block.attention is not None else 0)
    return first + cast


def yet_to_come(run: Run, n: Numbers) -> int:
    """Likewise, of the output that a reentrant checkpoint holds once the layer is computed: ``recomputed_output``."""
    return n.returned if run.activation_checkpointing and run.reentrant else 0


def recomputed_output(run: Run, n: Numbers, block: Block) -> int:
    """Bytes a token of a layer's output, which the reentrant checkpoint also holds.

    torch/utils/checkpoint.py, CheckpointFunction.backward@2.13.0.
    """
    return n.returned * streams(block) * block.hidden if run.activation_checkpointing and run.reentrant else 0
