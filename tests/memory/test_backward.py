"""What backward adds at its two ends, on one of two GPUs, for every way to shard gradients."""

import pytest

from advisor.memory.backward import embedding_gradients, first_gradients, head_gradient

from .small import CPU, LORA, TABLE, TOUCHED, UPCAST, P, fsdp, named, small

TWICE = {"gradient_accumulation_steps": 2}
OVERLAP = {"stage": 1, "overlap_comm": True}
ALONE = {"stage": 1, "overlap_comm": False}

HALF = {"attn_implementation": "flash_attention_2"}
CUT = {"plugins": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"], "cut_cross_entropy": True}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {}),
        (TWICE, {"gradients": UPCAST}),
        (fsdp(2), {}),
        ({**fsdp(2), **TWICE}, {"gradients": 2 * P}),
        ({"zero": {"stage": 0}}, {}),
        ({"zero": ALONE}, {}),
        ({"zero": OVERLAP}, {"gradient shard": 2 * TOUCHED}),
        # All gradients are in the bucket when the shard is made next to them.
        ({"zero": {**OVERLAP, "reduce_bucket_size": 10**6}, **TWICE}, {"gradients and their shard": 2 * P}),
        (
            {"zero": {**OVERLAP, "reduce_bucket_size": 100}, **TWICE},
            {"gradients and their shard": 2 * (P - 100 + TOUCHED)},
        ),
        ({"zero": {"stage": 2}}, {"gradient shard": 2 * TOUCHED}),
        ({"zero": {"stage": 2}, **TWICE}, {"gradient shard": 2 * 2 * TOUCHED}),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {"gradient staging": 2 * TABLE}),
        ({"zero": {"stage": 3}}, {"gradient shard": 2 * P // 2}),
    ],
)
def test_gradients_while_all_activations_are_there(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(first_gradients(found.run, found.weights)) == expected


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        ({}, 0),
        # Accumulated, the new one lies next to the old.
        (TWICE, 4 * TABLE),
        # Of a tied table both uses' gradients; autocast's cast makes the head's, into which the other is added.
        ({"tied": True}, 4 * TABLE),
        ({**TWICE, "tied": True}, 2 * 4 * TABLE),
        # In half precision it is a view of a product, and their sum is new; a fused loss makes one that is none.
        ({"tied": True, **HALF}, 2 * 2 * TABLE),
        ({"tied": True, **HALF, **CUT}, 2 * TABLE),
        ({"zero": ALONE}, 0),
        ({"zero": OVERLAP}, 2 * TABLE),
        ({"zero": {"stage": 2}}, 2 * TABLE),
        ({"zero": {"stage": 2}, "tied": True}, 3 * 2 * TABLE),
        ({"zero": {"stage": 3}, **TWICE}, 0),
        ({**fsdp(2), **TWICE}, 0),
        ({"optimizer": "lomo", **TWICE}, 0),
        ({**LORA, **TWICE}, 0),
    ],
)
def test_the_embeddings_gradient_comes_last(tmp_path, keys, bytes_):
    found = small(tmp_path, **keys)
    assert sum(term.bytes for term in embedding_gradients(found.run, found.model, found.weights)) == bytes_


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        ({}, 4 * TABLE),
        ({**fsdp(1), "gpus": 1}, 2 * TABLE),
        ({**fsdp(2), "gpus": 1}, 0),
        (TWICE, 0),
        (LORA, 0),
        ({"zero": {"stage": 0}}, 0),
        (fsdp(2), 0),
    ],
)
def test_the_heads_gradient_comes_first(tmp_path, keys, bytes_):
    found = small(tmp_path, **keys)
    assert sum(term.bytes for term in head_gradient(found.run, found.model)) == bytes_
