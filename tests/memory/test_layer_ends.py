"""A layer's backward where it is the last of its kind, or the first: which gradients there are, and what is kept."""

import json

import pytest

from advisor.memory.estimate import estimate
from advisor.memory.layer_ends import first_layers, passed_gradients
from advisor.opening import open_configs

from .small import ADAPTER, LAYER, LORA, MATRIX, TABLE, TOUCHED, UPCAST, P, fsdp, named, small

TWICE = {"gradient_accumulation_steps": 2}
FLASH = {"attn_implementation": "flash_attention_2"}
EAGER = {"attn_implementation": "eager"}
HYBRID = {
    "model_type": "lfm2",
    "architectures": ["Lfm2ForCausalLM"],
    "vocab_size": 1000,
    "hidden_size": 100,
    "intermediate_size": 200,
    "block_auto_adjust_ff_dim": False,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "conv_L_cache": 3,
    "max_position_embeddings": 64,
}


def gradients(found) -> dict[str, int]:
    _, terms = next(iter(first_layers(found.run, found.model, found.weights)))
    return named(term for term in terms if term.part == "gradients")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # At the product of the first layer's MLP only its last linear has one; the embedding's comes last of all.
        ({}, {"gradients": UPCAST - 4 * TABLE - 2 * (LAYER - MATRIX)}),
        # Attention's softmax comes after the MLP, and before queries, keys and values have theirs.
        (EAGER, {"gradients": UPCAST - 4 * TABLE - 2 * 3 * 100 * 100}),
        (TWICE, {"gradients": UPCAST}),
        ({"tied": True}, {"gradients": UPCAST - 4 * TABLE - 2 * (LAYER - MATRIX)}),
        ({**TWICE, "tied": True}, {"gradients": UPCAST - 4 * TABLE, "tied head's gradient": 4 * TABLE}),
        # Those of three layers' adapters.
        (LORA, {"gradients": 4 * ADAPTER * 3 // 4}),
        ({"zero": {"stage": 0}}, {"gradients": 2 * P}),
        ({"zero": {"stage": 2}}, {"gradient shard": 2 * TOUCHED}),
        (fsdp(2), {"gradients": 2 * (P - 2 * TABLE) // 2}),
    ],
)
def test_gradients_at_the_first_layer(tmp_path, keys, expected):
    assert gradients(small(tmp_path, **keys)) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {"gradients of later layers": 2 * (LAYER + MATRIX)}),
        (TWICE, {}),
        (LORA, {"gradients of later layers": 4 * ADAPTER // 4}),
        (fsdp(2), {}),
    ],
)
def test_gradients_at_the_last_layer_but_one(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(passed_gradients(found.run, found.model, found.weights, 2)) == expected


def backward_peak(folder, kinds: list[str]) -> int:
    config = {**HYBRID, "num_hidden_layers": len(kinds), "layer_types": kinds}
    (folder / "config.json").write_text(json.dumps(config))
    keys = {"base_model": str(folder), "bf16": True, "sequence_len": 2000, "optimizer": "adamw_torch_fused", **FLASH}
    keys |= {"gradient_checkpointing": True, **LORA, "lora_target_modules": ["w2"]}
    keys |= {"plugins": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"], "cut_cross_entropy": True}
    found = estimate(open_configs(keys, None, "1x a100-80gb", {}).run)
    assert found is not None
    return next(phase.bytes for phase in found.phases if phase.name == "backward")


def test_the_widest_kind_of_layer_works_when_the_inputs_of_later_ones_have_gone(tmp_path):
    """Of checkpointed layers, whose adapters have their gradients; attention's keep more than convolutions."""
    last = backward_peak(tmp_path, ["conv", "conv", "conv", "full_attention"])
    second = backward_peak(tmp_path, ["conv", "full_attention", "conv", "conv"])
    inputs, adapters = 2 * 2 * 2000 * 100, 2 * 4 * 10 * (100 + 200)
    assert last - second == inputs - adapters
