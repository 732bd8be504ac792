"""What the ranks' shards of DeepSpeed's flat groups touch."""

from advisor.memory.optimizer_states import largest_sub_group
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.memory.zero_shards import beyond_buckets, flat_groups, in_first_bucket, shards
from advisor.opening import open_configs
from advisor.run import Run

ODD = Weights((), (((7, 10), 1), ((3, 5), 2), ((5,), 2), ((10,), 1)))


def run_of(**config: object) -> Run:
    values = {"base_model": "meta-llama/Llama-3.2-1B", "sequence_len": 512, **config}
    return open_configs(values, {"zero_optimization": {"stage": 1}}, "8x a100-80gb", None).run


def test_tensors_that_repeat_are_those_of_a_layer():
    weights = Weights((), (((2, 3), 1), ((4, 4), 2), ((8,), 2), ((5, 1), 2)))
    assert flat_groups(weights) == ([6, 16, 5, 16, 5], [8, 8])


def test_a_tensor_that_is_cut_is_touched_on_both_sides():
    # 70 + 15 + 15 = 100 elements of matrices in shards of 34, and 5 + 5 + 10 of vectors in shards of 8.
    first, second, third = shards(ODD, 3)
    assert first.size == second.size == third.size == 34 + 8
    assert (first.touched, first.largest) == (70 + 5 + 5, 34)
    assert (second.touched, second.largest) == (70 + 5 + 10, 34)
    assert (third.touched, third.largest) == (70 + 15 + 15 + 10, 15)


def test_one_rank_has_everything():
    (only,) = shards(ODD, 1)
    assert (only.size, only.touched) == (120, 120)


def test_shards_cover_the_model():
    run = run_of()
    assert run.model is not None
    found = shards(weights_of(run, run.model), 8)
    assert 0 <= 8 * found[0].size - run.model.parameters < 8 * 2 * 2
    assert sum(shard.touched for shard in found) >= run.model.parameters
    assert max(shard.touched for shard in found) > found[0].size


def test_a_bucket_takes_what_comes_first_and_no_tensor_larger_than_itself():
    run = run_of()
    assert run.model is not None
    weights = weights_of(run, run.model)
    embedding = run.model.vocab_size * run.model.hidden_size
    assert embedding < 500_000_000
    assert embedding < in_first_bucket(run, weights) <= 500_000_000
    assert beyond_buckets(run, weights) == 0


def test_sub_groups_end_with_the_tensor_that_fills_them():
    assert largest_sub_group(ODD, 1, 1_000) == 100
    assert largest_sub_group(ODD, 1, 60) == 70
    assert largest_sub_group(ODD, 2, 8) == 35
