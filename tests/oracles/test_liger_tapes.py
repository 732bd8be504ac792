# pyright: basic
"""What stands in for Liger's functions in recordings, against the functions themselves, without their kernels."""

from importlib.util import find_spec
from types import SimpleNamespace
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")
if find_spec("liger_kernel") is None or find_spec("triton") is not None:
    pytest.skip("needs liger-kernel, and no Triton", allow_module_level=True)

from tests.allocations import kernels, liger  # noqa: E402
from tests.allocations.record import recorded  # noqa: E402
from tests.allocations.settings import LIGER  # noqa: E402

from .no_triton import without_triton  # noqa: E402

with without_triton():
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
    from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.rope import LigerRopeFunction
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

pytestmark = pytest.mark.oracle


def real(function):
    """A function that is called as what stands in for it."""

    def norm(x, weight, in_place):
        return function.apply(x, weight, 1e-6, 0.0, "llama", in_place, None)

    def first(*args):
        return function.apply(*args)[0]

    return SimpleNamespace(apply={"LigerRMSNormFunction": norm}.get(function.__name__, first))


def linear(hidden, weight, labels):
    options = (None, None, -100, 0.0, 0.0, "sum", None, False, None, False, False, False)
    return LigerFusedLinearCrossEntropyFunction.apply(hidden, weight, labels, *options)[0]


def entropy(logits, labels):
    return LigerCrossEntropyFunction.apply(logits, labels, None, -100, 0.0, 0.0, "sum", None, False, False, False)[0]


@pytest.mark.parametrize("name", [one for one in LIGER if "gemma" not in one])
def test_what_stands_in_for_it_allocates_what_liger_does(name):
    with mock.patch.object(liger, "PROCESSORS", 1):  # as many as a CPU has
        ours = recorded(name)
    real_functions = {
        "RMSNorm": real(LigerRMSNormFunction),
        "Gated": LigerSiLUMulFunction,
        "Rotation": LigerRopeFunction,
        "FusedLinear": SimpleNamespace(apply=linear),
        "CrossEntropy": SimpleNamespace(apply=entropy),
    }
    with (
        mock.patch.multiple(liger, **real_functions),
        mock.patch.object(torch.Tensor, "item", lambda _number: 1),
        mock.patch.object(torch.Tensor, "__bool__", lambda _number: True),
        mock.patch.object(torch, "equal", lambda *_: True),
    ):
        assert recorded(name) == ours


def test_recordings_use_what_stands_in():
    assert kernels.SCORES["liger-fused"] is liger.fused_linear
