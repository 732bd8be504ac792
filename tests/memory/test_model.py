"""Weights on one of two GPUs, while they are loaded and after, for every way to shard them."""

import pytest

from advisor.memory.estimate import counted_run, estimate
from advisor.memory.forward import checkpoints
from advisor.memory.gradients import gradient_terms
from advisor.memory.model import autocast_terms, load_terms, reference_terms, stored_terms
from advisor.memory.optimizer_states import optimizer_terms
from advisor.memory.weights import weights_of
from advisor.opening import open_configs

from .small import ADAPTER, CPU, LAYER, LORA, TABLE, UPCAST, P, fsdp, named, small

EIGHT_BITS = {**LORA, "load_in_8bit": True}
FOUR_BITS = {**LORA, "adapter": "qlora", "load_in_4bit": True}
LINEAR = 4 * (4 * 100 * 100 + 3 * 100 * 200)
"""What bitsandbytes quantizes."""
INT8 = LINEAR + 4 * 4 * (4 * 100 + 2 * 200 + 100)
"""One byte an element, and one fp32 scale a row."""


def bytes_of(terms):
    return sum(term.bytes for term in terms)


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        ({}, UPCAST),
        (fsdp(2), 2 * P // 2),
        (fsdp(1), 4 * P // 2),
        (fsdp(2, offload_params=True), 0),
        ({"zero": {"stage": 0}}, 2 * P),
        ({"zero": {"stage": 1}}, 2 * P),
        ({"zero": {"stage": 2}}, 2 * P),
        ({"zero": {"stage": 3}}, 2 * P // 2),
        ({"zero": {"stage": 3, "offload_param": CPU}}, 0),
        # FSDP1 makes the trained fp32, and what is frozen stays in half precision.
        ({**fsdp(1), **LORA}, 2 * P // 2 + 4 * ADAPTER // 2),
        ({"zero": {"stage": 3}, **LORA}, 2 * P // 2 + 2 * ADAPTER // 2),
    ],
)
def test_weights(tmp_path, keys, bytes_):
    found = small(tmp_path, **keys)
    assert bytes_of(stored_terms(found.run, found.weights)) == pytest.approx(bytes_, abs=5)


def test_tensor_parallelism_divides_all_but_embeddings_and_norms(tmp_path):
    found = small(tmp_path, tensor_parallel_size=2, optimizer="adamw_torch")
    run, model = counted_run(found.run, found.model)
    weights = weights_of(run, model)
    bytes_ = 4 * (TABLE + TABLE // 2 + 9 * 100) + 2 * 4 * (LAYER - 200) // 2
    assert bytes_of(stored_terms(run, weights)) == bytes_
    assert bytes_of(gradient_terms(run, weights)) == bytes_
    assert bytes_of(optimizer_terms(run, weights)) == 2 * bytes_


AUTOTP = {"tensor_parallel": {"autotp_size": 2}}


def test_autotp_divides_layers_and_no_table(tmp_path):
    found = small(tmp_path, gpus=4, zero={"stage": 1}, json=AUTOTP, optimizer="adamw_torch")
    run, model = counted_run(found.run, found.model)
    weights = weights_of(run, model)
    elements = 2 * TABLE + 9 * 100 + 4 * (LAYER - 200) // 2
    assert bytes_of(stored_terms(run, weights)) == 2 * elements
    assert (run.data_parallel_size, run.shard_size) == (2, 2)
    assert bytes_of(optimizer_terms(run, weights)) == 12 * elements // 2


def test_autotp_divides_what_is_loaded_whole(tmp_path):
    found = estimate(small(tmp_path, zero={"stage": 1}, json=AUTOTP).run)
    plain = estimate(small(tmp_path, zero={"stage": 1}).run)
    assert found is not None
    assert plain is not None
    loads = [next(phase.bytes for phase in each.phases if phase.name == "load") for each in (found, plain)]
    assert loads[0] == loads[1] >= 2 * P
    steps = [next(phase.bytes for phase in each.phases if phase.name == "optimizer step") for each in (found, plain)]
    assert steps[0] != steps[1]


def test_autotp_of_fused_projections_is_not_counted():
    config = {"base_model": "microsoft/Phi-3-mini-4k-instruct", "bf16": True}
    deepspeed = {"zero_optimization": {"stage": 1}, "bf16": {"enabled": True}, **AUTOTP}
    found = estimate(open_configs(config, deepspeed, "2x a100-80gb").run)
    assert found is not None
    assert [one.key for one in found.uncounted] == ["tensor_parallel.autotp_size"]


def test_zero_3_shards_8_bit_weights_and_keeps_them(tmp_path):
    found = small(tmp_path, zero={"stage": 3}, **EIGHT_BITS)
    terms = named(stored_terms(found.run, found.weights))
    quantized = terms["8-bit weights, whole"]
    assert quantized == INT8
    assert terms["quantized linear layers"] == quantized // 2


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        # Tables pass through fp32, or stay there; the last one's half-precision copy goes once it is cast.
        ({}, UPCAST + 2 * TABLE),
        ({"zero": {"stage": 2}}, 2 * P + 2 * 2 * TABLE + 2 * TABLE),
        ({"zero": {"stage": 3}}, 2 * P // 2 + 2 * TABLE),
        ({"zero": {"stage": 3}, "json": {"bf16": {"enabled": "auto"}}}, 4 * P // 2 + 4 * TABLE),
        ({"zero": {"stage": 3, "offload_param": CPU}}, 2 * TABLE),
        # A unit is a layer, or the tables' larger one.
        (fsdp(2), 2 * P // 2 + 2 * LAYER),
        (fsdp(1), 4 * P // 2 + 2 * LAYER),
        (fsdp(2, cpu_ram_efficient_loading=False), 2 * P + 2 * P // 2),
        (fsdp(1, cpu_ram_efficient_loading=False), 2 * P + 2 * LAYER),
        ({**fsdp(2, cpu_ram_efficient_loading=False), "gpus": 1}, 2 * P + 2 * LAYER),
    ],
)
def test_load(tmp_path, keys, bytes_):
    found = small(tmp_path, **keys)
    assert bytes_of(load_terms(found.run, found.model, found.weights)) == pytest.approx(bytes_, abs=5)


@pytest.mark.parametrize(
    ("keys", "whole"),
    [
        (FOUR_BITS, True),
        ({**FOUR_BITS, **fsdp(2, cpu_ram_efficient_loading=False)}, True),
        ({**FOUR_BITS, **fsdp(2)}, False),
        ({**FOUR_BITS, **fsdp(1)}, True),
        ({**FOUR_BITS, "zero": {"stage": 3}}, True),
    ],
)
def test_a_quantized_model_is_loaded_whole_unless_its_host_cuts_it(tmp_path, keys, whole):
    found = small(tmp_path, **keys)
    terms = {term.name: term.bytes for term in load_terms(found.run, found.model, found.weights)}
    assert terms.get("quantized model") == (found.weights.frozen_bytes if whole else None)


DPO = {"rl": "dpo"}
WIDE = 2 * 1000 * 100 + 9 * 100
"""Elements of tables and norms, which axolotl has in fp32 without FlashAttention."""


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        ({}, 0),
        (DPO, 2 * P + 2 * WIDE),
        ({**DPO, "attn_implementation": "flash_attention_2"}, 2 * P),
        ({**DPO, "zero": {"stage": 2}}, 2 * P),
        ({**DPO, "zero": {"stage": 3}}, 2 * P // 2),
        ({**DPO, "zero": {"stage": 3, "offload_param": CPU}}, 0),
        ({**DPO, **fsdp(2)}, 2 * P // 2),
        ({**DPO, **fsdp(2, offload_params=True)}, 0),
    ],
)
def test_the_reference_model_is_sharded_like_the_trained_one(tmp_path, keys, bytes_):
    found = small(tmp_path, **keys)
    assert bytes_of(reference_terms(found.run, found.model)) == bytes_


@pytest.mark.parametrize(
    ("keys", "elements"),
    [
        # Adapters are fp32 under PEFT, and half precision under DeepSpeed; FSDP casts by itself.
        (LORA, ADAPTER),
        ({**LORA, **fsdp(1)}, 0),
        ({**LORA, "zero": {"stage": 2}}, 0),
    ],
)
def test_autocast_copies_of_trained_weights(tmp_path, keys, elements):
    plain = dict.fromkeys(("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"), False)
    found = small(tmp_path, **keys, **plain)
    assert bytes_of(autocast_terms(found.run, found.model, found.weights)) == 2 * elements


def test_of_checkpointed_layers_one_has_its_copies_at_a_time(tmp_path):
    plain = dict.fromkeys(("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"), False)
    found = small(tmp_path, **LORA, **plain, gradient_checkpointing=True)
    moments = [bytes_of(autocast_terms(found.run, found.model, found.weights, when)) for when in ("loss", "layer")]
    assert moments == [0, 2 * ADAPTER // found.model.layers]


def test_copies_go_with_the_backward_of_what_they_are_of(tmp_path):
    found = small(tmp_path)
    whens = ("forward", "loss", "layer", "first layer")
    assert [bytes_of(autocast_terms(found.run, found.model, found.weights, when)) for when in whens] == [
        2 * TABLE,
        2 * TABLE,
        0,
        0,
    ]


def test_an_adapter_is_made_when_fp32_tables_have_gone(tmp_path):
    found = small(tmp_path, **LORA)
    assert bytes_of(load_terms(found.run, found.model, found.weights)) == 2 * P + 2 * 3 * TABLE


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, False),
        ({"gradient_checkpointing": True}, True),
        (fsdp(2), False),
        (fsdp(2, activation_checkpointing=True), True),
    ],
)
def test_who_may_ask_for_checkpoints(tmp_path, keys, expected):
    assert checkpoints(small(tmp_path, **keys).run) is expected


FROZEN_FP32 = {**LORA, "gradient_checkpointing": False}
WIDE = {"trainer": "hf-trainer", "base_dtype": "float32"}


@pytest.mark.parametrize(
    ("when", "checkpointing", "elements"),
    [
        ("forward", False, LINEAR + TABLE),
        ("loss", False, LINEAR + TABLE),
        ("layer", False, LINEAR),
        ("first layer", False, LINEAR // 4),
        ("forward", True, TABLE),
        ("layer", True, LINEAR // 4),
        ("evaluation", False, TABLE),
    ],
)
def test_autocast_copies_frozen_fp32_weights(tmp_path, when, checkpointing, elements):
    found = small(tmp_path, gpus=1, stack=WIDE, **FROZEN_FP32 | {"gradient_checkpointing": checkpointing})
    terms = named(autocast_terms(found.run, found.model, found.weights, when))
    assert terms["copies of frozen weights"] == 2 * elements


def test_frozen_half_precision_weights_need_no_copies(tmp_path):
    found = small(tmp_path, gpus=1, **FROZEN_FP32)
    assert "copies of frozen weights" not in named(autocast_terms(found.run, found.model, found.weights))
