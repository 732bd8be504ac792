# pyright: basic
"""torchao's step, as torch.compile makes it, against its allocations on a tape and in the ledger."""

import json
import subprocess
import sys

import pytest

from advisor.allocations.autograd.autograd import Storage, Tape, Tensor
from advisor.allocations.autograd.torchao import CODES, compiled_step
from advisor.memory.optimizers import OPTIMIZERS

pytest.importorskip("torchao")

pytestmark = pytest.mark.oracle
WIDTHS = {"float32": 4, "bfloat16": 2}


def written(optimizer: str, width: str, *shape: int) -> list[tuple[str, int]]:
    command = [sys.executable, "-m", "tests.oracles.inductor", optimizer, width, *map(str, shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def by_order(events) -> list[tuple[int, int]]:
    """Allocations by their number; of frees in a row the order is none."""
    numbers: dict[object, int] = {}
    found: list[tuple[int, int]] = []
    freed: list[tuple[int, int]] = []
    for name, size in events:
        if size:
            found += sorted(freed)
            freed = []
            numbers[name] = len(numbers)
            found.append((numbers[name], size))
        else:
            freed.append((numbers[name], 0))
    return found + sorted(freed)


@pytest.mark.parametrize("optimizer", CODES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_compiled_step_of_a_matrix_makes_what_a_tape_has(optimizer, width):
    tape = Tape()
    weight = Tensor(Storage(tape, 4), 16384 * 512, WIDTHS[width])
    compiled_step(tape, weight, optimizer)
    code = by_order(written(optimizer, width, 16384, 512))
    assert code == by_order(tape.events[1:])
    live = peak = 0
    sizes = dict(code[: len(code) // 2])
    for number, size in code:
        live += size or -sizes[number]
        peak = max(peak, live)
    assert peak == OPTIMIZERS[optimizer].matrix_step * weight.count


def test_a_vector_of_eight_bits_is_stepped_by_one_kernel():
    assert written("adamw_torch_8bit", "bfloat16", 16384) == []
