# pyright: basic
"""DoRA in axolotl's fused LoRA kernels against traces of axolotl's own functions."""

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")
pytest.importorskip("axolotl")

from advisor.memory import activations
from advisor.tracing.allocations import layer_forward_working, layer_saved, layer_working

from .axolotl_kernels import fused, lora
from .families import FAMILIES, described, family, lora_of, run_of
from .trace import Setting, trace

pytestmark = pytest.mark.oracle

TOKENS = 8192
WIDE: dict[str, Any] = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
}
MODELS = {"wide llama": family("LlamaConfig", **WIDE)} | {name: FAMILIES[name] for name in ("gemma2", "granite")}
DORA = Setting(adapter="all-linear", dora=True, prepare=fused)
BOUNDS = {"gemma2": 0.09, "granite": 0.05}
"""Of models as narrow as these, where some arrays as wide as the stream are not placed to the byte."""
SETTINGS = {
    "fp32": DORA,
    "fp32, dropout": replace(DORA, dropout=0.1),
    "bf16, dropout": replace(DORA, dropout=0.1, adapter_fp32=False),
}


@pytest.fixture(autouse=True)
def _norm_of_one_kernel():
    """On CUDA one Triton kernel gives the scale, with no merged weight: axolotl/kernels/dora.py:98-147@0.19.0."""
    with mock.patch.object(lora, "_compute_dora_scale", lambda *given: given[5].to(given[6]).detach()):
        yield


def traced(name: str, setting: Setting):
    """The run, one of its layers, and the trace."""
    model = described(MODELS[name])
    plain = run_of(model, setting, length=TOKENS)
    run = replace(plain, lora=replace(lora_of(setting), kernels=frozenset({"mlp", "qkv", "o"})))
    return run, model.blocks[0], trace(MODELS[name](3), setting, length=TOKENS)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_layer_keeps_and_holds_what_the_trace_does(name: str, setting: Setting):
    run, block, found = traced(name, setting)
    assert activations.saved_bytes(run, block) == pytest.approx(layer_saved(found, 1), rel=0.005)
    assert activations.backward_peak_bytes(run, block) == pytest.approx(
        layer_working(found, 1), rel=BOUNDS.get(name, 0.02)
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("checkpointing", ["reentrant", "non-reentrant"])
def test_a_recomputed_layer_holds_what_the_trace_does(name: str, setting: Setting, checkpointing):
    run, block, found = traced(name, replace(setting, checkpointing=checkpointing))
    counted = activations.saved_bytes(run, block) + activations.backward_peak_bytes(run, block)
    assert counted == pytest.approx(layer_working(found, 1), rel=BOUNDS.get(name, 0.03))


@pytest.mark.parametrize("name", MODELS)
def test_evaluation_holds_what_the_trace_does(name: str):
    run, block, found = traced(name, replace(DORA, evaluation=True))
    assert activations.no_grad_peak_bytes(run, block) == pytest.approx(layer_forward_working(found, 1), rel=0.02)
