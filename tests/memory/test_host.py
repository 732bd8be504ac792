"""Host memory of a node with two GPUs, for every way to offload."""

import pytest

from advisor.memory.host import host_terms

from .small import CPU, LORA, P, fsdp, named, small

SHARD = -(-P // 2)
MASTER, STATES = "master weights and gradients", "optimizer states"
BOTH = 2 * SHARD
TWICE = {"gradient_accumulation_steps": 2}
PAGED = {"optimizer": "paged_adamw_32bit"}
PINNED = {"device": "cpu", "pin_memory": True}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {}),
        ({"zero": {"stage": 2}}, {}),
        # Master weights 4 B, fp32 gradients 4, staging 2; AdamW's states 8.
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {MASTER: 10 * BOTH, STATES: 8 * BOTH}),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}, **TWICE}, {MASTER: 12 * BOTH, STATES: 8 * BOTH}),
        ({"zero": {"stage": 3, "offload_optimizer": CPU}, **TWICE}, {MASTER: 10 * BOTH, STATES: 8 * BOTH}),
        # 4 B and 2 B x 300,450 take the powers of two above 1,201,800 and 600,900.
        (
            {"zero": {"stage": 2, "offload_optimizer": PINNED}},
            {MASTER: 2 * (2 * 2**21 + 2**20), STATES: 8 * BOTH},
        ),
        ({"zero": {"stage": 3, "offload_param": CPU}}, {"trained shards": 2 * 2**20}),
        (
            {"zero": {"stage": 3, "offload_param": CPU}, **LORA},
            {"trained shards": 2 * 2**14, "frozen shards": 2 * P},
        ),
        (fsdp(2), {}),
        # Weights, gradients and two states of 2 B each.
        (fsdp(2, offload_params=True), {"shards, gradients, states": (2 + 2 + 4) * P}),
        ({**fsdp(2), **PAGED}, {"paged optimizer states": 8 * P}),
        ({"zero": {"stage": 2}, **PAGED}, {"paged optimizer states": 8 * P}),
        # Each of two ranks has all states.
        (PAGED, {"paged optimizer states": 2 * 8 * P}),
        (
            {"gradient_checkpointing": True, "activation_offloading": "hidden_states", **LORA},
            {"offloaded activations": 2 * 4 * 2 * 10 * 100},
        ),
    ],
)
def test_what_lies_on_the_host(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(host_terms(found.run, found.model, found.weights)) == expected
