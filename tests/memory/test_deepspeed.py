"""What DeepSpeed holds in addition to its shards: buckets, and what ZeRO-3 gathers."""

import pytest

from advisor.memory import estimate
from advisor.memory.deepspeed import (
    bucket_terms,
    buckets_at_loss,
    flattened_terms,
    gathered_terms,
    lasting_buckets,
    overflow_terms,
    retained_terms,
    secondary_terms,
)
from advisor.memory.host import host_terms
from advisor.memory.optimizer_states import optimizer_terms

from .small import ADAPTER, CPU, LORA, MATRIX, TABLE, P, fsdp, named, small

ZERO_3 = '{"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 50000000}, "bf16": {"enabled": true}}'


@pytest.fixture
def gathered(make_run):
    """Bytes that are gathered when the loss is computed."""

    def made(model, checkpoints):
        text = f"base_model: {model}\nsequence_len: 4096\nattn_implementation: flash_attention_2\n"
        run = make_run(text + f"gradient_checkpointing: {str(checkpoints).lower()}\n", "8x a100-80gb", ZERO_3)
        found = estimate(run)
        assert found is not None and run.model is not None
        (loss,) = [phase for phase in found.phases if phase.name == "forward and loss"]
        names = {"gathered module", "live parameters"}
        return sum(term.bytes for term in loss.terms if term.name in names), run.model

    return made


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_small_model_is_whole_once(gathered, checkpoints):
    """Two processes of DeepSpeed 0.18.9: each parameter is gathered once, and one bucket is on its way."""
    bytes_, model = gathered("Qwen/Qwen2.5-0.5B", checkpoints)
    assert bytes_ == 2 * (model.parameters + 50_000_000)


@pytest.mark.parametrize("checkpoints", [True, False])
def test_of_a_large_model_as_much_as_may_live(gathered, checkpoints):
    bytes_, model = gathered("meta-llama/Llama-3.1-8B", checkpoints)
    assert bytes_ == 2 * (model.vocab_size * model.hidden_size + 2 * 10**9)


BUCKET = {"reduce_bucket_size": 1000}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {}),
        (fsdp(2), {}),
        ({"zero": {"stage": 0, **BUCKET}}, {}),
        ({"zero": {"stage": 1, **BUCKET, "overlap_comm": True}}, {"reduce buckets": 2 * 2 * 1000}),
        ({"zero": {"stage": 2, **BUCKET, "overlap_comm": True}}, {"reduce buckets": 2 * 2 * 1000}),
        ({"zero": {"stage": 2, **BUCKET, "overlap_comm": False}}, {"reduce buckets": 2 * 1000}),
        ({"zero": {"stage": 2, **BUCKET, "contiguous_gradients": False}}, {}),
        ({"zero": {"stage": 3, **BUCKET}}, {"reduce bucket": 2 * 1000}),
    ],
)
def test_reduce_buckets(tmp_path, keys, expected):
    assert named(bucket_terms(small(tmp_path, **keys).run)) == expected


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        ({}, 0),
        ({"zero": {"stage": 0, **BUCKET}}, 0),
        ({"zero": {"stage": 1, **BUCKET}}, 2 * 1000),
        ({"zero": {"stage": 2, **BUCKET}}, 2 * 1000),
        ({"zero": {"stage": 2, "reduce_bucket_size": 10**6}}, 2 * P),
        ({"zero": {"stage": 2, **BUCKET}, "gpus": 1}, 0),
        ({"zero": {"stage": 2, **BUCKET, "offload_optimizer": CPU}}, 0),
        ({"zero": {"stage": 3, **BUCKET}}, 0),
    ],
)
def test_a_bucket_is_flattened_while_it_is_reduced(tmp_path, keys, bytes_):
    found = small(tmp_path, **keys)
    assert sum(term.bytes for term in flattened_terms(found.run, found.weights)) == bytes_


TWICE = {"gradient_accumulation_steps": 2}


@pytest.mark.parametrize(
    ("keys", "in_forward", "as_backward_starts"),
    [
        ({}, 0, 0),
        ({"zero": {"stage": 1, **BUCKET, "overlap_comm": False}}, 0, 0),
        ({"zero": {"stage": 1, **BUCKET, "overlap_comm": False}, **TWICE}, 2 * 1000, 2 * 1000),
        ({"zero": {"stage": 2, **BUCKET, "overlap_comm": False}, **TWICE}, 0, 0),
        ({"zero": {"stage": 2, **BUCKET, "overlap_comm": False}, "stack": {"deepspeed": "0.18.2"}}, 0, 2 * 1000),
        ({"zero": {"stage": 3, **BUCKET}}, 2 * 1000, 2 * 1000),
    ],
)
def test_which_buckets_are_there_before_gradients_are(tmp_path, keys, in_forward, as_backward_starts):
    run = small(tmp_path, **keys).run
    assert sum(term.bytes for term in lasting_buckets(run)) == in_forward
    assert sum(term.bytes for term in buckets_at_loss(run)) == as_backward_starts


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"zero": {"stage": 2}}, {}),
        (
            {"zero": {"stage": 2, "offload_optimizer": CPU}},
            {"largest gradient": 2 * TABLE, "overflow check": (4 + 1 + 1 + 1 + 4) * TABLE},
        ),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}, "stack": {"deepspeed": "0.19.0"}}, {}),
        ({"zero": {"stage": 3, "offload_optimizer": CPU}}, {}),
    ],
)
def test_gradients_are_scanned_on_their_way_to_the_host(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(overflow_terms(found.run, found.weights)) == expected


LIVE = {
    "stage": 3,
    "stage3_max_live_parameters": 10_000,
    "stage3_max_reuse_distance": 15_000,
    "stage3_prefetch_bucket_size": 5_000,
    "stage3_param_persistence_threshold": 100,
}
WITHOUT_INIT = {"zero_init": False}


@pytest.mark.parametrize(
    ("moment", "keys", "expected"),
    [
        ("layer", {}, {}),
        ("layer", {"zero": {**LIVE, "stage": 2}}, {}),
        ("layer", {"zero": LIVE, "gpus": 1}, {}),
        ("end of backward", {"zero": LIVE}, {}),
        # Norms are below the threshold; what lives is the larger of the two limits, twice.
        (
            "layer",
            {"zero": LIVE},
            {"persistent parameters": 2 * 900, "gathered module": 2 * MATRIX, "live parameters": 2 * 2 * 15_000},
        ),
        (
            "end of forward",
            {"zero": LIVE},
            {"persistent parameters": 2 * 900, "gathered module": 2 * TABLE, "live parameters": 2 * 2 * 15_000},
        ),
        # All of the model may live: what is not at work, and a bucket on its way.
        (
            "layer",
            {"zero": {**LIVE, "stage3_max_live_parameters": 10**6}},
            {
                "persistent parameters": 2 * 900,
                "gathered module": 2 * MATRIX,
                "live parameters": 2 * (P - MATRIX + 5_000),
            },
        ),
        (
            "layer",
            {"zero": {**LIVE, "stage3_param_persistence_threshold": 1_000}, **LORA},
            {
                "persistent parameters": 2 * (900 + ADAPTER),
                "gathered module": 2 * MATRIX,
                "live parameters": 2 * 2 * 15_000,
            },
        ),
    ],
)
def test_what_zero_3_gathers(tmp_path, moment, keys, expected):
    found = small(tmp_path, **{"gradient_checkpointing": True, **keys})
    assert named(gathered_terms(found.run, found.model, found.weights, moment)) == expected


@pytest.mark.parametrize(
    ("keys", "elements"),
    [
        ({"zero": LIVE, "stack": WITHOUT_INIT}, P - TABLE),
        ({"zero": LIVE, "stack": {"zero_init": True}}, 0),
        ({"zero": LIVE, "stack": WITHOUT_INIT, "gradient_checkpointing": True}, 0),
        ({"zero": LIVE, "stack": WITHOUT_INIT, **LORA}, 0),
        ({"zero": {**LIVE, "stage": 2}, "stack": WITHOUT_INIT}, 0),
        ({"zero": LIVE, "stack": WITHOUT_INIT, "gpus": 1}, 0),
    ],
)
def test_weights_that_autograd_keeps_without_zero_init(tmp_path, keys, elements):
    found = small(tmp_path, **keys)
    assert sum(term.bytes for term in retained_terms(found.run, found.model)) == 2 * elements


@pytest.mark.parametrize("moment", ["layer", "end of forward"])
def test_one_gpu_holds_what_two_do_of_offloaded_parameters(tmp_path, moment):
    zero = {"stage": 3, "offload_param": CPU}
    one, two = (small(tmp_path, gpus=gpus, zero=zero) for gpus in (1, 2))
    found = gathered_terms(one.run, one.model, one.weights, moment)
    assert named(found) == named(gathered_terms(two.run, two.model, two.weights, moment)) != {}


def test_one_gpu_that_holds_its_parameters_gathers_nothing(tmp_path):
    made = small(tmp_path, gpus=1, zero={"stage": 3})
    assert gathered_terms(made.run, made.model, made.weights, "layer") == ()


@pytest.mark.parametrize(
    ("zero", "bytes_"),
    [
        ({"stage": 3}, 0),
        ({"stage": 3, "zero_hpz_partition_size": 1}, 0),
        ({"stage": 3, "zero_hpz_partition_size": 4}, 2 * P // 4),
        ({"stage": 2, "zero_hpz_partition_size": 4}, 0),
        ({"stage": 3, "zero_hpz_partition_size": 4, "offload_param": CPU}, 0),
    ],
)
def test_hierarchical_partitions_keep_every_weight_a_second_time(tmp_path, zero, bytes_):
    found = small(tmp_path, gpus=8, zero=zero)
    assert sum(term.bytes for term in secondary_terms(found.run, found.weights)) == bytes_


@pytest.mark.parametrize(
    ("ratio", "sub_group_size", "share"),
    [(1.0, 0, 0.0), (0.3, 0, 0.7), (0.0, 0, 1.0), (0.6, 10**9, 0.0), (0.3, 10**9, 1.0)],
)
def test_a_ratio_below_one_leaves_whole_sub_groups_on_the_gpu(tmp_path, ratio, sub_group_size, share):
    # Matrices and vectors are sub-groups of their own, so that there are two at least.
    zero = {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": ratio}, "sub_group_size": sub_group_size}
    found = small(tmp_path, zero=zero)
    shard = found.weights.trained_elements // 2
    kept, whole = named(optimizer_terms(found.run, found.weights)).get("sub-groups kept", 0), 16 * shard
    assert kept == pytest.approx(share * whole, rel=0.15, abs=1)
    moved = named(host_terms(found.run, found.model, found.weights)).get("optimizer states", 0)
    assert moved == pytest.approx(2 * 8 * (shard - kept // 16), abs=64)
