"""The end of a step: the gradients' norm, the optimizer, and the gradients' release."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.memory.reserved.autograd import Tape, Tensor
from advisor.memory.reserved.operations import FULL


def clipped(tape: Tape, weights: Sequence[Tensor]) -> None:
    """torch/nn/utils/clip_grad.py, clip_grad_norm_@2.13.0, of all weights at once."""
    norms = [tape.new(1, width) for width in sorted(weight.width for weight in weights)]
    width = norms[-1].width
    stacked = tape.new(len(norms), width)
    total = tape.new(1, width)
    del stacked
    norms.clear()
    more = tape.new(1, width)
    inverse = tape.new(1, width)
    factor = tape.new(1, width)
    del more, inverse
    limited = tape.new(1, width)
    del factor, limited, total


def adamw(tape: Tape, weights: Sequence[Tensor], states: list[Tensor], *, foreach: bool) -> None:
    """torch/optim/adamw.py@2.13.0: two states of a weight's size; foreach makes a root of the second for all at once.

    The fused one counts its steps on the GPU.
    """
    if not states:
        for weight in weights:
            if not foreach:
                states.append(tape.new(1, FULL))
            states += [tape.new(weight.count, weight.width), tape.new(weight.count, weight.width)]
    if not foreach:
        return
    roots: list[Tensor] = []
    for width in sorted({weight.width for weight in weights}):
        group = [tape.new(weight.count, width) for weight in weights if weight.width == width]
        roots = group  # those of the last precision go only now
        del group
    del roots
