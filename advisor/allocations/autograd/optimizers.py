"""The end of a step: the gradients' norm, the optimizer, and the gradients' release."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.allocations.autograd import torchao
from advisor.allocations.autograd.autograd import Tape, Tensor
from advisor.allocations.autograd.operations import FULL
from advisor.memory.optimizers import LEAST_PAGED, LEAST_QUANTIZED


def clipped(tape: Tape, weights: Sequence[Tensor]) -> None:
    """torch/nn/utils/clip_grad.py, clip_grad_norm_@2.13.0, of all weights at once."""
    if not weights:
        return
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


def stepped(tape: Tape, weights: Sequence[Tensor], states: list[Tensor], optimizer: str) -> None:
    """The step of an optimizer by its name in transformers; its states are made in the first."""
    first = not states
    for weight in weights:
        if first:
            states += states_of(tape, weight, optimizer)
        if optimizer in torchao.CODES:
            torchao.compiled_step(tape, weight, optimizer)
    if optimizer == "adamw_torch":
        _foreach_roots(tape, weights)


def states_of(tape: Tape, weight: Tensor, optimizer: str) -> list[Tensor]:
    """AdamW's two states of one weight."""
    match optimizer:
        case "adamw_torch":
            return [tape.new(weight.count, weight.width) for _ in range(2)]
        case "adamw_torch_fused":  # counts its steps on the GPU
            return [tape.new(1, FULL), *(tape.new(weight.count, weight.width) for _ in range(2))]
        case _ if optimizer in torchao.CODES:
            return torchao.states_of(tape, weight, optimizer)
        case _:
            return _bitsandbytes_states(tape, weight, optimizer)


def _bitsandbytes_states(tape: Tape, weight: Tensor, optimizer: str) -> list[Tensor]:
    """bitsandbytes/optim/optimizer.py, init_state, get_state_buffer@0.50.2: large paged states lie in managed memory.

    Tensors below 4096 elements, and embeddings by the Trainer's override, have fp32 states.
    """
    managed = optimizer.startswith("paged") and weight.count >= LEAST_PAGED
    if "8bit" not in optimizer or weight.count < LEAST_QUANTIZED or weight.embedding:
        return [] if managed else [tape.new(weight.count, FULL) for _ in range(2)]
    made = [] if managed else [tape.new(weight.count, 1) for _ in range(2)]
    return [*made, *(tape.new(-(-weight.count // 256), FULL) for _ in range(2))]


def _foreach_roots(tape: Tape, weights: Sequence[Tensor]) -> None:
    """torch/optim/adam.py, _multi_tensor_adam@2.13.0: a root of each second moment, of one precision at a time.

    The precision that is met last comes first: foreach_utils.cpp keeps them in an unordered map.
    """
    roots: list[Tensor] = []
    for width in reversed(dict.fromkeys(weight.width for weight in weights)):
        group = [tape.new(weight.count, width) for weight in weights if weight.width == width]
        roots = group  # those of the last precision go only now
        del group
    del roots
