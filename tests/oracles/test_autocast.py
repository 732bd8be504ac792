# pyright: basic
"""Which half-precision copies of weights autocast keeps until it ends."""

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle


def casts(take) -> int:
    """How many distinct copies two products with a weight leave behind, for backward."""
    weight, seen = torch.zeros(4, 6, requires_grad=True), set()

    def keep(tensor):
        if tensor.dtype == torch.bfloat16 and tensor.shape[-1] != 3:
            seen.add(tensor.untyped_storage().data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), torch.autocast("cpu", torch.bfloat16):
        held = [torch.zeros(3, 4, dtype=torch.bfloat16, requires_grad=True) @ take(weight) for _ in range(2)]
    del held
    return len(seen)


def test_autocast_keeps_one_copy_of_a_leaf_and_a_copy_for_each_use_of_a_view():
    one, two = casts(lambda weight: weight), casts(lambda weight: weight.reshape(4, 6).view(4, 6))
    assert two > one
