# pyright: basic
"""axolotl's fused LoRA kernels against traces of axolotl's own functions: what they keep and hold."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")
pytest.importorskip("axolotl")

import torch
from transformers import AutoModelForCausalLM, NemotronHConfig, NemotronHForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from advisor.memory import activations
from advisor.memory.activations.lora_kernels import adapter_elements
from advisor.models.family import families, family_of
from advisor.tracing.allocations import layer_forward_working, layer_saved, layer_working

from .axolotl_kernels import fused, lora, lora_kernels, patches
from .families import FAMILIES, described, lora_of, run_of
from .trace import Setting, trace, weight_casts

pytestmark = pytest.mark.oracle

ALL = frozenset({"mlp", "qkv", "o"})
TOKENS, SCALAR = 256, 4
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
SETTINGS = {
    "all": Setting(adapter="all-linear"),
    "dropout": Setting(adapter="all-linear", dropout=0.1),
    "bf16 adapters": Setting(adapter="all-linear", adapter_fp32=False),
    "bf16 adapters, dropout": Setting(adapter="all-linear", adapter_fp32=False, dropout=0.1),
    "attention alone": Setting(adapter=PROJECTIONS[:4], dropout=0.1),
    "MLP alone": Setting(adapter=PROJECTIONS[4:]),
    "queries and values": Setting(adapter=("q_proj", "v_proj"), dropout=0.1),
    "without down": Setting(adapter=PROJECTIONS[:6]),
}
NAMES = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "seed_oss", "granite", "smollm3"]


def run_with_kernels(model, setting):
    plain = run_of(model, setting)
    return replace(plain, lora=replace(lora_of(setting), kernels=ALL))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", SETTINGS)
def test_layers_keep_and_hold_what_the_trace_does(name, case):
    setting = replace(SETTINGS[case], prepare=fused)
    model = described(FAMILIES[name])
    run, block = run_with_kernels(model, setting), model.blocks[0]
    result = trace(FAMILIES[name](3), setting)
    assert activations.saved_bytes(run, block) == layer_saved(result, 1)
    # Where PEFT computes the MLP, constants of norms have gone by its widest moment: see test_activations.
    assert abs(activations.backward_peak_bytes(run, block) - layer_working(result, 1)) <= SCALAR * (
        TOKENS + block.hidden
    )


@pytest.mark.parametrize("name", ["mistral", "gemma"])
@pytest.mark.parametrize("case", ["all", "dropout"])
def test_adapters_are_kept_in_half_precision_by_the_kernels_alone(name, case):
    setting = replace(SETTINGS[case], prepare=fused)
    model = described(FAMILIES[name])
    run = run_with_kernels(model, setting)
    assert weight_casts(trace(FAMILIES[name](3), setting)) == 3 * 2 * adapter_elements(run, model.blocks[0])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "seed_oss"])
@pytest.mark.parametrize("case", ["all", "dropout"])
@pytest.mark.parametrize("checkpointing", ["reentrant", "non-reentrant"])
def test_a_recomputed_layer_holds_what_the_trace_does(name, case, checkpointing):
    """Not Seed-OSS, whose attention has dropout, for which a CPU has no kernel."""
    setting = replace(SETTINGS[case], prepare=fused, checkpointing=checkpointing)
    model = described(FAMILIES[name])
    run, block = run_with_kernels(model, setting), model.blocks[0]
    result = trace(FAMILIES[name](3), setting)
    assert block.attention is not None
    rotary = TOKENS * (4 * block.attention.head_dim + 8)
    excess = (
        layer_working(result, 1) - activations.saved_bytes(run, block) - activations.backward_peak_bytes(run, block)
    )
    positions = 8 * TOKENS if checkpointing == "non-reentrant" else 0
    scaled = 2 * 192 * TOKENS if name == "granite" else 0
    assert 0 <= excess - rotary <= positions + scaled + 64


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_holds_what_the_trace_does(name):
    setting = replace(SETTINGS["all"], prepare=fused, evaluation=True)
    model = described(FAMILIES[name])
    run = run_with_kernels(model, setting)
    traced = layer_forward_working(trace(FAMILIES[name](3), setting), 1)
    assert activations.no_grad_peak_bytes(run, model.blocks[0]) == traced


def known_types():
    """Every model type that is counted and that transformers has."""
    counted = {name for name, row in families().items() if row.layout is not None}
    return sorted(counted & set(CONFIG_MAPPING_NAMES))


@pytest.mark.parametrize("model_type", known_types())
def test_axolotl_stops_where_it_cannot_patch_the_attention(model_type):
    row = family_of(model_type)
    assert row is not None
    assert patches(model_type) == (row.lora_kernels != "unpatchable"), "lora_kernels of its row"


def test_nemotrons_attention_is_patched_and_not_bound():
    config = NemotronHConfig(
        vocab_size=64,
        hidden_size=64,
        intermediate_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        layers_block_type=["attention", "mlp"],
    )
    assert patches("nemotron_h")
    with torch.device("meta"):
        model = NemotronHForCausalLM(config)
    layers = model.model.layers
    assert type(layers[0].mixer).__name__ == "NemotronHAttention"
    assert not any(True for layer in layers for _ in lora_kernels.find_self_attn_in_layer(layer))
    assert {name for name, row in families().items() if row.lora_kernels == "unbound"} == {"nemotron_h"}


@pytest.mark.parametrize("name", ["starcoder2", "jais2"])
def test_kernels_cannot_add_what_fp32_norms_give_them(name):
    """CUDA's autocast computes ``nn.LayerNorm`` in fp32, and hands that on."""
    row = family_of(name)
    assert row is not None
    assert row.lora_kernels == "need half-precision norms"
    with torch.device("meta"):
        norm = AutoModelForCausalLM.from_config(FAMILIES[name](2)).model.layers[0].input_layernorm
    assert isinstance(norm, torch.nn.LayerNorm)
    half, a, b = torch.ones(4, 8, dtype=torch.bfloat16), torch.ones(2, 8), torch.ones(4, 2)
    with torch.autocast("cpu", torch.bfloat16):
        lora.matmul_lora(torch.ones(1, 3, 8, dtype=torch.bfloat16), half, None, None, a, b, 1.0)
        with pytest.raises(RuntimeError, match="dtype"):
            lora.matmul_lora(torch.ones(1, 3, 8), half, None, None, a, b, 1.0)
