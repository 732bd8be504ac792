"""Optimizer states and what else the step takes, on one of two GPUs, for every way to shard them."""

from types import SimpleNamespace
from typing import cast

import pytest

from advisor.memory.host import host_terms
from advisor.memory.optimizer_states import optimizer_terms, step_terms, unpaged_bytes
from advisor.memory.optimizers import OPTIMIZERS
from advisor.memory.weight_groups import Weights, group_of
from advisor.memory.weights import weights_of
from advisor.opening import open_configs

from .small import CPU, TABLE, UPCAST, P, fsdp, named, small

MASTER, STATES = "fp32 master weights", "optimizer states"
SHARD = P // 2
FOREACH = {"optimizer": "adamw_torch"}
PAGED = {"optimizer": "paged_adamw_32bit"}
MATRIX_STEP = {"adamw_torch_8bit": 8, "adamw_torch_4bit": 24, "ao_adamw_fp8": 0}
"""Bytes of torchao's temporaries per element, but for those of scales."""
FLAT = 6 * TABLE // 2 + 450
"""A shard of DeepSpeed's two groups: 600,000 elements of matrices, 900 of norms."""


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {STATES: 2 * UPCAST}),
        # Small tensors' states are not paged, nor are the scales of 8-bit ones: the tables' 100,000 elements are enough.
        (PAGED, {STATES: 8 * (P - 2 * TABLE)}),
        (
            {"optimizer": "paged_adamw_8bit"},
            {STATES: 2 * (P - 900) + round(2 * (P - 900) * 4 / 256) + 8 * 900 - 2 * 2 * TABLE},
        ),
        # No tensor here is a whole number of torchao's blocks: the states are as wide as the weights.
        *(({"optimizer": name}, {STATES: 2 * UPCAST}) for name in MATRIX_STEP),
        (fsdp(2), {STATES: 2 * 2 * P // 2}),
        (fsdp(1), {STATES: 2 * 4 * P // 2}),
        (fsdp(2, offload_params=True), {}),
        ({"zero": {"stage": 0}}, {MASTER: 4 * P, STATES: 8 * P}),
        ({"zero": {"stage": 1}}, {MASTER: 4 * SHARD, STATES: 8 * SHARD}),
        ({"zero": {"stage": 2}}, {MASTER: 4 * SHARD, STATES: 8 * SHARD}),
        ({"zero": {"stage": 3}}, {MASTER: 4 * SHARD, STATES: 8 * SHARD}),
        ({"zero": {"stage": 2}, **PAGED}, {MASTER: 4 * SHARD}),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {}),
        ({"zero": {"stage": 3, "offload_optimizer": CPU}}, {}),
        (
            {"zero": {"stage": 2}, "json": {"optimizer": {"type": "AdamW", "params": {}}}, "optimizer": "sgd"},
            {MASTER: 4 * SHARD, STATES: 8 * SHARD},
        ),
    ],
)
def test_states_and_master_weights(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(optimizer_terms(found.run, found.weights)) == expected


CAST = (2 + 4) * FLAT
"""The flat copy in half precision, and its cast."""
STEPPING = (4 + 4) * FLAT
"""Gradients and temporaries in fp32, beside the shard in half precision: the norms' gradients keep it."""


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {}),
        *(({"optimizer": name}, {}) for name in MATRIX_STEP),
        (FOREACH, {"step temporaries": UPCAST}),
        ({**fsdp(2), **FOREACH}, {"step temporaries": 2 * P // 2}),
        ({**fsdp(2, offload_params=True), **FOREACH}, {}),
        ({"zero": {"stage": 0}, **FOREACH}, {"fp32 gradients": (4 + 4 - 2) * P}),
        ({"zero": {"stage": 1}}, {"fp32 gradients": CAST}),
        ({"zero": {"stage": 2}, **FOREACH}, {"fp32 gradients": max(CAST, STEPPING)}),
        # One shard of each tensor until there are 60,000: half the embedding and a 5,000 of the first layer's.
        ({"zero": {"stage": 3, "sub_group_size": 60_000}, **FOREACH}, {"fp32 gradients": (4 + 4) * 60_000}),
        ({"zero": {"stage": 3, "sub_group_size": 60_000}}, {"fp32 gradients": (2 + 4) * 60_000}),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {}),
        (
            {"zero": {"stage": 2, "offload_optimizer": CPU}, "stack": {"deepspeed": "0.16.9"}},
            {"fp32 shard on its way": 4 * SHARD},
        ),
        ({"zero": {"stage": 3, "offload_optimizer": CPU}, "stack": {"deepspeed": "0.16.9"}}, {}),
    ],
)
def test_next_to_them_in_the_step(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(step_terms(found.run, found.weights)) == expected


HALF = {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_half_precision_masters_take_six_bytes_instead_of_twelve(tmp_path, stage):
    made = small(tmp_path, zero={"stage": stage}, json=HALF)
    states = named(optimizer_terms(made.run, made.weights))
    assert states == {"master weights": 2 * P // 2, "optimizer states": 4 * P // 2}


def test_offloaded_half_precision_masters_leave_cpu_adams_states_in_fp32(tmp_path):
    offload = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
    made = small(tmp_path, zero=offload, json={"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}})
    host = named(host_terms(made.run, made.model, made.weights))
    states = {"master weights and gradients": 2 * 6 * (P // 2), "optimizer states": 2 * 8 * (P // 2)}
    assert host == states | {"one gradient": 2 * 2 * 100_000}


@pytest.mark.parametrize(
    ("optimizer", "state"), [("adamw_torch_8bit", 1), ("adamw_torch_4bit", 0.5), ("ao_adamw_fp8", 1)]
)
def test_torchao_quantizes_states_in_blocks_and_needs_room_for_the_largest_matrix(optimizer, state):
    """Llama 3.2 1B has 16 layers, a table of 128,256 x 2048 that is its head, and norms of 2048, which stay as they are."""
    keys = {"base_model": "meta-llama/Llama-3.2-1B", "optimizer": optimizer, "bf16": True, "learning_rate": 1e-5}
    run = open_configs(keys, None, "1x a100-80gb", None).run
    assert run.model is not None
    weights = weights_of(run, run.model)
    table, norms = 128256 * 2048, 33 * 2048
    (states,) = optimizer_terms(run, weights)
    blocks = 2 * (weights.trained_elements - norms) * (state + 4 / 256)
    assert states.bytes == pytest.approx(blocks + 2 * norms * 4, abs=1)
    (step,) = step_terms(run, weights)
    assert step.bytes == (MATRIX_STEP[optimizer] + 8 / 256) * table


@pytest.mark.parametrize(
    ("optimizer", "elements", "each"),
    [
        ("paged_adamw_32bit", 99_999, 4),
        ("paged_adamw_32bit", 100_000, 0),
        ("paged_adamw_8bit", 4095, 4),
        ("paged_adamw_8bit", 4096, 1 + 4 / 256),
    ],
)
def test_states_are_paged_and_quantized_from_so_many_elements_on(optimizer: str, elements: int, each: float):
    """Bytes of each of two states that stay on the GPU."""
    weights = cast("Weights", SimpleNamespace(trained_shapes=(((elements,), 1),)))
    assert unpaged_bytes(OPTIMIZERS[optimizer], weights) == round(2 * elements * each)


@pytest.mark.parametrize(
    ("elements", "small", "uneven"),
    [(4095, True, True), (4096, False, False), (4097, False, True), (4352, False, False)],
)
def test_a_tensor_is_quantized_from_4096_elements_on_and_by_torchao_in_whole_blocks(
    elements: int, small: bool, uneven: bool
):
    group = group_of("weights", 2, True, "test", [((elements,), 1)])
    assert (group.small_elements, group.uneven_elements) == (small * elements, uneven * elements)
