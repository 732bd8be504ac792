# pyright: basic
"""Layers with 4-bit linears behind layer norms, which hand autocast's fp32 on, against traces of the real modules."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from advisor.memory import activations
from advisor.tracing.allocations import layer_saved, layer_working

from .families import FAMILIES, described, run_of
from .four_bit import quantized
from .trace import Setting, trace

pytestmark = pytest.mark.oracle

ALL = Setting(adapter="all-linear", casts_inputs=False, prepare=quantized)
SETTINGS = {"all": ALL, "all, dropout": replace(ALL, dropout=0.1)}
TWO = replace(ALL, adapter=("q_proj", "v_proj"))
LAYER_NORMS = ("phi", "gpt_neox", "starcoder2", "stablelm")
RMS_NORMS = ("mistral", "qwen3")


@pytest.mark.parametrize("name", LAYER_NORMS + RMS_NORMS)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_layer_keeps_and_holds_what_the_trace_does(name: str, setting: Setting):
    compare(name, setting)


@pytest.mark.parametrize("name", ["phi", "starcoder2"])
def test_an_mlp_without_adapters_holds_fp32_gradients_too(name: str):
    compare(name, TWO)


def compare(name: str, setting: Setting) -> None:
    model = described(FAMILIES[name])
    run, block = run_of(model, setting), model.blocks[-1]
    found = trace(FAMILIES[name](3), setting)
    assert activations.saved_bytes(run, block) == layer_saved(found, 1), activations.saved_formula(run, block)
    # The gradient of A in half precision comes and goes: no activation.
    gradient_of_a = 2 * setting.rank * 640
    assert 0 <= layer_working(found, 1) - activations.working_bytes(run, block) <= gradient_of_a
