"""torchao's AdamW with states of 8 or 4 bits: torchao/optim/adam.py@0.17.0."""

from __future__ import annotations

from advisor.allocations.autograd.autograd import Tape, Tensor
from advisor.allocations.autograd.operations import FULL, LONG
from advisor.memory.optimizers import LEAST_QUANTIZED

BLOCK = 256
"""Elements that share a scale: transformers/trainer_optimizer.py:460@5.16.1."""
CODES = {"adamw_torch_8bit": 256, "adamw_torch_4bit": 16, "ao_adamw_fp8": 0}
"""How many values codes stand for, in a table of their own; fp8 needs none."""


def is_quantized(weight: Tensor) -> bool:
    """Whether a weight's states are: _AdamBase._new_buffer."""
    return weight.count >= LEAST_QUANTIZED and weight.count % BLOCK == 0


def states_of(tape: Tape, weight: Tensor, optimizer: str) -> list[Tensor]:
    """Codes, scales and the table of values, twice: subclass_8bit.py, subclass_4bit.py, subclass_fp8.py, zeros."""
    if not is_quantized(weight):
        return [tape.new(weight.count, weight.width) for _ in range(2)]
    found: list[Tensor] = []
    values = CODES[optimizer]
    for _ in range(2):
        codes = weight.count // 2 if optimizer == "adamw_torch_4bit" else weight.count
        found += [tape.new(codes, 1), tape.new(weight.count // BLOCK, FULL)]
        if values:
            found.append(tape.new(values, FULL))
    return found


def compiled_step(tape: Tape, weight: Tensor, optimizer: str) -> None:
    """What single_param_adam allocates once torch.compile has made it: the code that torch 2.13.0 writes for a matrix.

    Scales are new tensors until they are copied; of 8 and 4 bits both states are in fp32 to be rounded, and of 4 bits
    also the codes, as indices, before two of them are packed. Vectors of 8 bits need none of it, which is some KiB.
    """
    if not is_quantized(weight):
        return
    count, blocks = weight.count, weight.count // BLOCK
    scales = [tape.new(blocks, FULL) for _ in range(2)]
    rounded = [tape.new(count, FULL) for _ in range(2)] if CODES[optimizer] else []
    if optimizer != "adamw_torch_4bit":
        del rounded
        scales.pop(0)
        return
    indices = [tape.new(count, LONG) for _ in range(2)]
    for each in (rounded, indices, scales) * 2:
        del each[0]
