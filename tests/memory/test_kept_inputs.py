"""8-bit linears that keep their inputs, DoRA's results, and adapters on single layers."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.memory.activations import lasting_bytes, saved_bytes
from advisor.memory.adapters import adapter_groups
from advisor.memory.estimate import estimate
from advisor.opening import open_configs
from advisor.run import Run
from advisor.run.stack import Stack

from .test_activations import LLAMA_3_8B, lora, run_of

INT8: dict[str, Any] = {"quantization": "int8", **lora(dropout=0.05)}


def test_8_bit_linears_keep_their_inputs_where_adapters_keep_copies():
    plain, int8 = run_of(LLAMA_3_8B, **lora(dropout=0.05)), run_of(LLAMA_3_8B, **INT8)
    # What attention reads, what the MLP reads, and the product; the output projection's input is kept anyway.
    more = 2 * (2 * 4096 + 14336)
    assert saved_bytes(int8, LLAMA_3_8B) - saved_bytes(plain, LLAMA_3_8B) == more * 4096


@pytest.mark.parametrize(
    ("facts", "per_token"),
    [
        ({"activation_checkpointing": True, "reentrant": False}, 2 * (3 * 4096 + 14336)),
        ({"activation_checkpointing": True, "reentrant": True}, 0),
        ({}, 0),
    ],
)
def test_non_reentrant_checkpoints_do_not_free_them(facts: dict[str, Any], per_token: int):
    assert lasting_bytes(run_of(LLAMA_3_8B, **INT8, **facts), LLAMA_3_8B) == per_token * 4096


OUTPUTS = 2 * 4096 + 2 * 1024 + 2 * 14336 + 4096
WEIGHTS = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336


@pytest.mark.parametrize(
    ("facts", "width", "fixed"),
    [
        ({}, 4, 0),
        ({"dropout": 0.05}, 4, 2),
        ({"autocast": False}, 6, 0),
        ({"autocast": False, "dropout": 0.05}, 8, 4),
        ({"autocast": False, "fp32": False, "dropout": 0.05}, 4, 0),
    ],
)
def test_dora_keeps_its_results_and_with_dropout_a_cast_weight(facts: dict[str, Any], width: int, fixed: int):
    adapter = {key: value for key, value in facts.items() if key in {"fp32", "dropout"}}
    rest = {key: value for key, value in facts.items() if key not in {"fp32", "dropout"}}
    plain = run_of(LLAMA_3_8B, **lora(**adapter), **rest)
    dora = run_of(LLAMA_3_8B, **lora(**adapter, dora=True), **rest)
    more = saved_bytes(dora, LLAMA_3_8B) - saved_bytes(plain, LLAMA_3_8B)
    assert more == width * OUTPUTS * 4096 + fixed * WEIGHTS


def test_axolotls_kernels_keep_both_results_of_dora_in_one():
    kernels = frozenset(["mlp", "qkv", "o"])
    plain, dora = (run_of(LLAMA_3_8B, stack=Stack(), **lora(kernels=kernels, **more)) for more in ({}, {"dora": True}))
    assert saved_bytes(dora, LLAMA_3_8B) - saved_bytes(plain, LLAMA_3_8B) == 2 * OUTPUTS * 4096


YAML: dict[str, Any] = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "adapter": "lora",
    "lora_r": 16,
    "lora_alpha": 32,
    "sequence_len": 4096,
    "bf16": True,
}


def of(targets: list[str] | str) -> Run:
    return open_configs(YAML | {"lora_target_modules": targets}, None, "1x h100-80gb").run


@pytest.mark.parametrize(
    ("targets", "layers"),
    [
        (["layers.28.self_attn.q_proj"], 1),
        (["layers.0.self_attn.q_proj", "layers.31.self_attn.q_proj"], 2),
        (r"model.layers.(1|2|3).self_attn.q_proj", 3),
        (r"model.layers.\d+.self_attn.q_proj", 32),
        (["q_proj"], 32),
    ],
)
def test_targets_that_name_layers_count_for_those_alone(targets: list[str] | str, layers: int):
    run = of(targets)
    assert run.model is not None
    assert sum(group.elements for group in adapter_groups(run, run.model)[0]) == layers * 16 * (4096 + 4096)


def test_layers_without_an_adapter_keep_no_input_for_it():
    kept: list[int] = []
    for targets in (["layers.28.self_attn.q_proj"], ["layers.28.self_attn.q_proj", "layers.29.self_attn.q_proj"]):
        found = estimate(replace(of(targets), attention="flash"))
        assert found is not None
        phase = next(phase for phase in found.phases if phase.name == "forward and loss")
        kept.append(sum(term.bytes for term in phase.terms if term.name == "activations"))
    assert kept[1] - kept[0] == 2 * (4096 + 16) * 4096
