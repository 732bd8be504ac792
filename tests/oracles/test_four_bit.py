# pyright: basic, reportMissingImports=false
"""Layers with 4-bit linears behind layer norms, which hand autocast's fp32 on, against traces of the real modules."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from transformers import NemotronHConfig

from advisor.memory import activations
from advisor.models import describe
from advisor.tracing.allocations import layer_saved, layer_working

from .families import FAMILIES, WIDE_HEADS, described, run_of
from .four_bit import quantized
from .test_activations import wide_norms
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


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_linears_hand_on_the_fp32_of_a_wide_stream(setting: Setting):
    def prepared(model: Any) -> None:
        quantized(model)
        wide_norms(model)

    compare("mistral", replace(setting, prepare=prepared), wide=True)


MIXED = {
    "layer_types": ["mlp", "linear_attention", "full_attention", "moe", "mlp", "linear_attention"],
    "num_hidden_layers": 6,
    "mamba_num_heads": 12,
    "mamba_head_dim": 32,
    "n_groups": 2,
    "ssm_state_size": 16,
    "chunk_size": 64,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 112,
    "moe_shared_expert_intermediate_size": 80,
    "n_group": 1,
    "topk_group": 1,
    "vocab_size": 64,
    "pad_token_id": 0,
}
NAMED = replace(ALL, adapter=("q_proj", "k_proj", "v_proj", "o_proj", "in_proj", "up_proj", "down_proj"))


@pytest.mark.parametrize(("index", "place"), [(1, 1), (2, 2), (3, 3), (4, 0)], ids=["Mamba", "attention", "MoE", "MLP"])
def test_squares_widen_the_stream_of_layers_that_compute_in_half_precision(index: int, place: int):
    config = NemotronHConfig(**WIDE_HEADS, **MIXED)
    model = describe(config.to_dict(), "nemotron_h", "test")
    block, found = model.blocks[place], trace(config, NAMED)
    run = run_of(model, NAMED)
    kept, held = activations.saved_bytes(run, block), activations.backward_peak_bytes(run, block)
    assert kept == pytest.approx(layer_saved(found, index), rel=0.01), activations.saved_formula(run, block)
    assert kept + held == pytest.approx(layer_saved(found, index) + layer_working(found, index), rel=0.01)


def compare(name: str, setting: Setting, *, wide: bool = False) -> None:
    model = described(FAMILIES[name])
    run, block = run_of(model, setting, fp32_residual_stream=wide), model.blocks[-1]
    found = trace(FAMILIES[name](3), setting)
    assert activations.saved_bytes(run, block) == layer_saved(found, 1), activations.saved_formula(run, block)
    # The gradient of A in half precision comes and goes: no activation.
    gradient_of_a = 2 * setting.rank * 640
    assert 0 <= layer_working(found, 1) - activations.backward_peak_bytes(run, block) <= gradient_of_a
