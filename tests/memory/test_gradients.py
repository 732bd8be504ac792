"""Gradients on one of two GPUs, for every way to shard them; tests/oracles measures the same on real runs."""

import pytest

from advisor.memory.gradients import (
    between_micro_steps,
    bucket_copies,
    gradient_terms,
    reduction_terms,
    step_gradients,
)

from .small import CPU, TABLE, TOUCHED, UPCAST, P, fsdp, named, small

TWICE = {"gradient_accumulation_steps": 2}
EACH = {"accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}}}
OVERLAP = {"stage": 1, "overlap_comm": True}
IN_FP32 = {"data_types": {"grad_accum_dtype": "fp32"}}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {"gradients": UPCAST}),
        ({"optimizer": "lomo"}, {"one gradient at a time": 2 * TABLE}),
        ({"zero": {"stage": 0}}, {"gradients": 2 * P}),
        ({"zero": {"stage": 1, "overlap_comm": False}}, {"gradients": 2 * P}),
        ({"zero": OVERLAP}, {"gradient shard": 2 * TOUCHED}),
        (
            {"zero": {**OVERLAP, "reduce_bucket_size": 50_000}},
            {"gradient shard": 2 * TOUCHED, "large gradients": 2 * 2 * TABLE},
        ),
        ({"zero": OVERLAP, **TWICE}, {"gradients": 2 * P}),
        ({"zero": {"stage": 1, "offload_optimizer": CPU}}, {"gradient staging": 2 * TABLE}),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {"gradient staging": 2 * TABLE}),
        ({"zero": {"stage": 2}}, {"gradient shard": 2 * TOUCHED}),
        ({"zero": {"stage": 2}, **TWICE}, {"gradient shard": 2 * 2 * TOUCHED}),
        ({"zero": {"stage": 3}}, {"gradient shard": 2 * P // 2}),
        ({"zero": {"stage": 3}, "json": IN_FP32}, {"gradient shard": 4 * P // 2}),
        ({"zero": {"stage": 3, "offload_optimizer": CPU}}, {}),
        (fsdp(2), {"gradients": 2 * P // 2}),
        (fsdp(1), {"gradients": 4 * P // 2}),
        ({**fsdp(2), **TWICE}, {"gradients": 2 * P}),
        ({**fsdp(1), **TWICE}, {"gradients": 2 * P}),
        ({**fsdp(2), **TWICE, **EACH}, {"gradients": 2 * P // 2}),
        (fsdp(2, offload_params=True), {}),
    ],
)
def test_when_backward_ends(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(gradient_terms(found.run, found.weights)) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {"gradients": UPCAST}),
        ({"zero": {"stage": 1}, **TWICE}, {"gradient shard": 2 * TOUCHED}),
        ({"zero": {"stage": 2}, **TWICE}, {"gradient shard": 2 * TOUCHED}),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {"gradient staging": 2 * TABLE}),
        ({"zero": {"stage": 3}, **TWICE}, {"gradient shard": 2 * P // 2}),
        ({**fsdp(2), **TWICE}, {"gradients": 2 * P // 2}),
        ({**fsdp(2, offload_params=True), **TWICE}, {}),
    ],
)
def test_when_the_optimizer_steps(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(step_gradients(found.run, found.weights)) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {}),
        (TWICE, {"gradients": UPCAST}),
        ({"zero": {"stage": 2}}, {}),
        ({"zero": {"stage": 2}, **TWICE}, {"gradient shard": 2 * TOUCHED}),
        ({"zero": {"stage": 1}, **TWICE}, {"gradients": 2 * P}),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {"gradient staging": 2 * TABLE}),
        ({"zero": {"stage": 3}}, {"gradient shard": 2 * P // 2}),
        (fsdp(2), {}),
        ({**fsdp(2), **TWICE}, {"gradients": 2 * P}),
    ],
)
def test_during_forward(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(between_micro_steps(found.run, found.weights)) == expected


@pytest.mark.parametrize(
    ("bucket", "elements"),
    # A bucket of 150,000 takes the embedding and the attention of the first layer: its next matrix is one too many.
    [(10**6, P), (150_000, P - (TABLE + 4 * 100 * 100) + TOUCHED)],
)
def test_stage_1_makes_its_shard_next_to_what_the_first_bucket_left(tmp_path, bucket, elements):
    found = small(tmp_path, zero={"stage": 1, "overlap_comm": False, "reduce_bucket_size": bucket})
    assert named(reduction_terms(found.run, found.weights)) == {"gradients and their shard": 2 * elements}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {"DDP buckets": UPCAST}),
        ({"gpus": 1}, {}),
        ({"zero": {"stage": 2}}, {}),
        (fsdp(2), {}),
    ],
)
def test_only_ddp_keeps_them_twice(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(bucket_copies(found.run, found.weights)) == expected
