# pyright: basic
"""sdpa without kernels, as bf16 gets it before Ampere: the formulas against torch's math backend."""

from dataclasses import replace
from itertools import accumulate

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from torch.profiler import ProfilerActivity, profile  # noqa: E402

from advisor.hardware import parse_hardware  # noqa: E402
from advisor.memory import activations  # noqa: E402
from advisor.tracing.allocations import layer_forward_working, layer_saved, layer_working  # noqa: E402

from .families import EAGER, FAMILIES, described, run_of  # noqa: E402
from .test_activations import APPROXIMATE, FALCON_SCALARS  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

MATH = Setting(math=True)
DROPOUT = {"gpt2", "gpt_bigcode", "seed_oss"}
"""Dropout of the probabilities, which no formula counts."""
SETTINGS = {
    "full": MATH,
    "full, no autocast": replace(MATH, autocast=False),
    "full, mask": replace(MATH, padding_mask=True),
    "LoRA": replace(MATH, adapter="all-linear"),
    "LoRA, dropout": replace(MATH, adapter="all-linear", dropout=0.1),
    "LoRA, bf16 adapters": replace(MATH, adapter="all-linear", autocast=False, adapter_fp32=False),
}


def pair(name, setting, length=256):
    """The traced step, and the run that stands for it on a T4."""
    run = run_of(described(FAMILIES[name]), setting, length=length)
    return trace(FAMILIES[name](3), setting, length=length), replace(run, hardware=parse_hardware("1x t4"))


@pytest.mark.parametrize("case", SETTINGS)
def test_a_layer_keeps_its_scores_in_fp32_to_the_byte(case):
    traced, run = pair("mistral", SETTINGS[case])
    assert activations.saved_bytes(run, run.model.blocks[-1]) == layer_saved(traced, 1)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in EAGER | DROPOUT])
def test_every_family_keeps_what_its_trace_keeps(name):
    traced, run = pair(name, MATH)
    found = layer_saved(traced, 1) - (FALCON_SCALARS if name.startswith("falcon") else 0)
    assert activations.saved_bytes(run, run.model.blocks[-1]) == pytest.approx(found, rel=APPROXIMATE.get(name, 0))


@pytest.mark.parametrize("case", SETTINGS)
def test_backward_is_widest_at_the_softmax(case):
    traced, run = pair("mistral", SETTINGS[case], 1024)
    formula = activations.backward_peak_bytes(run, run.model.blocks[-1])
    assert formula == pytest.approx(layer_working(traced, 1), rel=0.01)


@pytest.mark.parametrize("name", ["mistral", "qwen3", "gpt_neox", "mixtral"])
def test_a_forward_without_gradients_holds_scores_and_probabilities(name):
    """But for the infinite ones, a byte a score, which torch finds inside one operation; see below."""
    traced, run = pair(name, replace(MATH, evaluation=True), 2048)
    block = run.model.blocks[-1]
    inside = block.attention.heads * 2048**2
    formula = activations.no_grad_peak_bytes(run, block)
    # The causal mask in bool, twice, and in fp32 is there, too: six bytes by token and key, whatever the heads.
    assert formula - inside == pytest.approx(layer_forward_working(traced, 1) - 6 * 2048**2, rel=0.025)


def test_the_softmax_of_scores_holds_a_byte_a_score_next_to_its_output():
    scores = torch.randn(8, 256, 256)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        torch.ops.aten._safe_softmax.default(scores, -1)
    sizes = [event.nbytes() for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert max(accumulate(sizes)) == pytest.approx(5 * scores.numel(), rel=0.01)
