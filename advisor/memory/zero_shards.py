"""DeepSpeed's flat groups: trained tensors one after the other, cut into one shard a rank wherever that falls.

Stages 1 and 2 gather the gradients of a shard tensor by tensor, so a tensor that the cut goes through is whole on both
sides of it: deepspeed/runtime/zero/stage_1_and_2.py:982-1022,1516-1532@0.18.9.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from advisor.memory.weight_groups import Shape, Weights
from advisor.record import record
from advisor.run import Run, Zero

Sizes = Sequence[int]
"""Elements of the tensors of one group, in the order of the model's parameters."""


@record(eq=False)
class Shard:
    """One rank's part of all groups, in elements."""

    size: int
    touched: int
    """Of every tensor in full of which a part belongs to the shard."""
    largest: int
    """Of the largest piece of one tensor in it."""


def flat_groups(weights: Weights) -> tuple[Sizes, Sizes]:
    """What decays and what does not: matrices and vectors, as the Trainer groups them."""
    return groups_of(weights.trained_shapes)


@lru_cache(maxsize=8)
def groups_of(trained: tuple[tuple[Shape, int], ...]) -> tuple[Sizes, Sizes]:
    """The same of shapes: the runs of a plan share them."""
    shapes = list(in_order(trained))
    return [numel for matrix, numel in shapes if matrix], [numel for matrix, numel in shapes if not matrix]


def in_order(shapes: Iterable[tuple[Shape, int]]) -> Iterator[tuple[bool, int]]:
    """Whether it is a matrix, and its elements, tensor by tensor: neighbours that repeat are the tensors of a layer."""
    layer: list[tuple[bool, int, int]] = []
    for shape, count in (*shapes, ((), 1)):
        numel = 1
        for size in shape:
            numel *= size
        if count > 1:
            layer.append((len(shape) > 1, numel, count))
            continue
        for index in range(max((times for *_, times in layer), default=0)):
            yield from ((matrix, numel_) for matrix, numel_, times in layer if index < times)
        layer = []
        if shape:
            yield len(shape) > 1, numel


def shards(weights: Weights, ranks: int) -> list[Shard]:
    """Every rank's part."""
    return _shards_of(weights.trained_shapes, ranks)


@lru_cache(maxsize=8)
def _shards_of(trained: tuple[tuple[Shape, int], ...], ranks: int) -> list[Shard]:
    """The same of shapes."""
    sizes, touched, largest = 0, [0] * ranks, [0] * ranks
    for group in groups_of(trained):
        size = -(-sum(group) // (2 * ranks)) * 2
        sizes += size
        for rank, numel, piece in pieces(group, size):
            touched[rank] += numel
            largest[rank] = max(largest[rank], piece)
    return [Shard(sizes, *each) for each in zip(touched, largest, strict=True)]


def pieces(group: Sizes, size: int) -> Iterator[tuple[int, int, int]]:
    """Each rank that a tensor of a group lies on, with the tensor's elements and how many of them are there."""
    start = 0
    for numel in group:
        end = start + numel
        for rank in range(start // size, -(-end // size)):
            yield rank, numel, min(end, (rank + 1) * size) - max(start, rank * size)
        start = end


def widest_shard(run: Run, weights: Weights) -> Shard:
    """The part of the rank that holds most gradients."""
    return max(shards(weights, run.shard_size), key=lambda shard: shard.touched)


def in_first_bucket(run: Run, weights: Weights) -> int:
    """Elements that stage 1 moves to its bucket before the first reduction frees anything.

    A tensor larger than the bucket is reduced where it lies: stage_1_and_2.py:1086-1125@0.18.9.
    """
    if not isinstance(run.sharding, Zero):
        return 0
    matrices, vectors = flat_groups(weights)
    order = [*matrices, *vectors]
    taken = 0
    for numel in reversed(order) if run.sharding.overlap_comm else order:
        if taken + numel > run.sharding.reduce_bucket_size:
            break
        taken += numel
    return taken


def beyond_buckets(run: Run, weights: Weights) -> int:
    """Elements of the tensors that no bucket can take."""
    if not isinstance(run.sharding, Zero):
        return 0
    size = run.sharding.reduce_bucket_size
    return sum(numel for group in flat_groups(weights) for numel in group if numel > size)
