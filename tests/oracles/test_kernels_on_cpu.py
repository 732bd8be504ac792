# pyright: basic
"""What stands in for axolotl's kernels on a CPU: the same numbers as torch's own functions, and the kernels' memory."""

import sys
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from advisor.plugins.axolotl import kernels_on_cpu  # noqa: E402
from advisor.plugins.axolotl.meters import TensorMeter  # noqa: E402

pytestmark = pytest.mark.oracle

ROWS, LENGTH, WORDS = 3, 65, 2048
COPY = 4 * ROWS * (LENGTH - 1) * WORDS


def shifted():
    """Logits of several rows without their last token, which do not lie one after another, and a token for each."""
    torch.manual_seed(0)
    logits = torch.randn(ROWS, LENGTH, WORDS, requires_grad=True)
    return logits, logits[:, :-1], torch.randint(WORDS, (ROWS, LENGTH - 1))


def test_numbers_and_gradients_are_those_of_a_whole_log_softmax():
    logits, scored, labels = shifted()
    expected = scored.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    found = kernels_on_cpu.selective_log_softmax(scored, labels)
    assert torch.allclose(found, expected, atol=1e-5)
    weights = torch.rand(ROWS, LENGTH - 1)
    gradients = [torch.autograd.grad((one * weights).sum(), logits)[0] for one in (found, expected)]
    assert torch.allclose(*gradients, atol=1e-5)
    of_logits = torch.distributions.Categorical(logits=scored.detach()).entropy()
    assert torch.allclose(kernels_on_cpu.entropy_from_logits(scored.detach()), of_logits, atol=1e-4)


def test_log_probabilities_take_a_copy_and_one_gradient_and_entropy_nothing():
    with TensorMeter() as meter:
        _, scored, labels = shifted()
        before = meter.held
        meter.restart()
        found = kernels_on_cpu.selective_log_softmax(scored, labels)
        assert meter.peak - before == pytest.approx(COPY, rel=0.3)
        before = meter.held
        meter.restart()
        kernels_on_cpu.entropy_from_logits(scored.detach())
        assert meter.peak - before < 0.3 * COPY
        meter.restart()
        found.sum().backward()
        assert meter.peak - before == pytest.approx(COPY, rel=0.3)


@pytest.mark.parametrize("patched", [True, False])
def test_it_takes_the_place_of_axolotls_functions_alone(patched, monkeypatch):
    names = ("selective_log_softmax", "entropy_from_logits")
    kernels, used = ModuleType("kernels"), ModuleType("used")
    for name in names:
        setattr(kernels, name, object())
        setattr(used, name, getattr(kernels, name) if patched else object())
    monkeypatch.setitem(sys.modules, kernels_on_cpu.KERNELS, kernels)
    monkeypatch.setitem(sys.modules, kernels_on_cpu.USED, used)
    kernels_on_cpu.stand_in()
    assert all((getattr(used, name) is getattr(kernels_on_cpu, name)) == patched for name in names)
