"""Optimizer states, master weights, and what the optimizer's step holds in addition."""

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from advisor.memory.ledger import Term
from advisor.memory.optimizers import BYTES, LEAST_PAGED, LEAST_QUANTIZED, OPTIMIZERS, Optimizer, Width, optimizer_named
from advisor.memory.weight_groups import Group, Shape, Weights
from advisor.memory.zero_shards import flat_groups, groups_of, widest_shard
from advisor.run import Fsdp, Run, Zero

MASTER = "deepspeed/runtime/zero/stage_1_and_2.py:560-577, stage3.py@0.18.9: fp32 master weights, always"
HALF_MASTER = (
    "deepspeed/runtime/zero/stage_1_and_2.py:472-473, stage3.py:1026-1037, base_optimizer.py:474-479@0.18.9:"
    " a copy in half precision, of stage 3's shards too"
)
FLATTEN = "deepspeed/runtime/zero/stage_1_and_2.py:1930-1936,2160-2195,2219-2226@0.18.9"
SUB_GROUP = (
    "deepspeed/runtime/zero/stage3.py:1074-1097,2238-2257@0.18.9: 2 + 4 B of a sub-group, then 4 and temporaries"
)
COMPILED = (
    "torchao/optim/adam.py, single_param_adam, compiled by torch 2.13.0: both states in fp32, and the indices of 4-bit"
    " codes in int64"
)
PARTIAL = "deepspeed/runtime/zero/stage3.py:964-972,1112-1122@0.18.9: the first sub-groups step on the GPU"
H2D = "deepspeed before 0.17.0 copies the fp32 shard to the GPU whole (pull request 7309)"


def optimizer_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """States and master weights on one GPU, from the second step on."""
    optimizer = effective_optimizer(run)
    match run.sharding:
        case Zero():
            return zero_states(run, weights, optimizer)
        case Fsdp(offload_params=True):
            return ()
        case Fsdp():
            n = run.shard_size
        case None:
            n = 1
    if optimizer.paged:
        bytes_ = unpaged_bytes(optimizer, weights) // n
        text = f"{bytes_ * n:,} B of small tensors, and scales"
        return (Term("optimizer states", "optimizer", bytes_, text + (f" / {n}" if n > 1 else ""), optimizer.source),)
    bytes_ = sum(state_bytes(optimizer, group) for group in weights.trained) // n
    text = f"{run.optimizer}: {_per_element(bytes_ * n, weights.trained_elements)} B x {weights.trained_elements:,}"
    return (Term("optimizer states", "optimizer", bytes_, text + (f" / {n}" if n > 1 else ""), optimizer.source),)


def unpaged_bytes(optimizer: Optimizer, weights: Weights) -> int:
    """What paged optimizers keep on the GPU: the states of small tensors, and the scales of 8-bit ones.

    bitsandbytes/optim/optimizer.py, get_state_buffer, init_state@0.50.2.
    """
    total = 0.0
    for shape, count in weights.trained_shapes:
        elements = prod(shape)
        for width in optimizer.states:
            bits = BYTES["fp32" if elements < LEAST_QUANTIZED else width]
            scales = bits % 1
            total += count * elements * (bits if elements < LEAST_PAGED else scales)
    return round(total)


def effective_optimizer(run: Run) -> Optimizer:
    """The optimizer that will really run: DeepSpeed's own block, accelerate's replacement, or the one asked for."""
    match run.sharding:
        case Zero(own_optimizer=str()) | Zero(offload_optimizer="cpu" | "nvme", force_cpu_adam=True):
            return OPTIMIZERS["adamw_torch_fused"]
        case _:
            return optimizer_named(run.optimizer)


def zero_states(run: Run, weights: Weights, optimizer: Optimizer) -> tuple[Term, ...]:
    """fp32 master weights and states of the shard; nothing on the GPU once they are offloaded."""
    if not isinstance(run.sharding, Zero) or run.sharding.offload_optimizer != "gpu":
        kept = sub_groups_kept(run, weights)
        text = f"16 B x {kept:,}: masters, gradients and AdamW's states in fp32"
        return (Term("sub-groups kept", "optimizer", 16 * kept, text, PARTIAL),) if kept else ()
    trained, n = weights.trained_elements, run.shard_size if run.sharding.stage else 1
    master = _master_term(run, trained, n)
    if optimizer.paged:
        return (master,)
    states = flat_state_width(optimizer, run.sharding.master_bytes)
    kind = "fp32" if run.sharding.master_bytes == 4 else "half-precision"
    text = f"{run.optimizer} on {kind} shards: {states:g} B x {trained:,} / {n}"
    return (
        master,
        Term("optimizer states", "optimizer", round(states * trained / n), text, optimizer.source),
    )


def _master_term(run: Run, trained: int, n: int) -> Term:
    """The shard that the optimizer works on."""
    if run.zero is not None and run.zero.master_bytes == 2:
        return Term("master weights", "optimizer", 2 * trained // n, f"2 B x {trained:,} / {n}", HALF_MASTER)
    return Term("fp32 master weights", "optimizer", 4 * trained // n, f"4 B x {trained:,} / {n}", MASTER)


def flat_state_width(optimizer: Optimizer, master: float = 4.0) -> float:
    """Bytes per element of all states on DeepSpeed's flat shard of masters, where nothing can be factored."""
    return sum(float(master) if width in {"param", "factored"} else BYTES[width] for width in optimizer.states)


def state_bytes(optimizer: Optimizer, group: Group) -> int:
    """Bytes of all states of a group, unsharded."""
    if optimizer.embeddings_fp32 and group.embedding:
        return round(4 * len(optimizer.states) * group.elements)
    if optimizer.matrices_only:
        return _matrix_and_rest(optimizer, group)
    total = 0.0
    for width in optimizer.states:
        total += _state_elements(width, group) * _state_width(width, group)
        if optimizer.blocks:
            total += group.uneven_elements * (group.width - BYTES[width])
        elif width in {"int8", "int4"}:
            total += group.small_elements * (4 - BYTES[width])
    return round(total)


def _matrix_and_rest(optimizer: Optimizer, group: Group) -> int:
    """Muon and its like: their own states for hidden matrices, AdamW's two for embeddings, head and vectors."""
    inner = 0 if group.name in {"embeddings", "head"} else group.matrix_elements
    return round(inner * group.width * len(optimizer.states) + 2 * group.width * (group.elements - inner))


def _state_elements(width: Width, group: Group) -> int:
    """Elements of one state."""
    return group.factored_elements if width == "factored" else group.elements


def _state_width(width: Width, group: Group) -> float:
    """Bytes per element of one state: torch's optimizers allocate ``zeros_like(param)``."""
    match width:
        case "param":
            return group.width
        case "factored":
            return 4.0
        case _:
            return BYTES[width]


def step_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """What the optimizer's step needs in addition to states and gradients."""
    optimizer = effective_optimizer(run)
    match run.sharding:
        case Zero():
            return zero_step(run, weights, optimizer)
        case Fsdp(offload_params=True):
            return ()
        case Fsdp():
            n = run.shard_size
        case None:
            n = 1
    if optimizer.matrix_step:
        largest = max((group.largest_even for group in weights.trained), default=0)
        bytes_ = round(optimizer.matrix_step * largest / n)
        text = f"{optimizer.matrix_step:.2f} B x {largest:,}, one matrix" + (f" / {n}" if n > 1 else "")
        return (Term("step temporaries", "optimizer", bytes_, text, COMPILED),) if bytes_ else ()
    bytes_ = round(optimizer.step * weights.trained_bytes / n)
    text = f"{optimizer.step:g} x {weights.trained_bytes:,} B" + (f" / {n}" if n > 1 else "")
    return (Term("step temporaries", "optimizer", bytes_, text, optimizer.source),) if bytes_ else ()


def zero_step(run: Run, weights: Weights, optimizer: Optimizer) -> tuple[Term, ...]:
    """DeepSpeed casts its shard of the gradients to fp32 before the step, whole or by sub-group."""
    if not isinstance(run.sharding, Zero):
        return ()
    zero, trained = run.sharding, weights.trained_elements
    n = run.shard_size if zero.stage else 1
    shard = trained // n
    if zero.offload_optimizer != "gpu":
        if run.stack.at_least("deepspeed", "0.17.0") or zero.stage == 3:
            return ()
        return (Term("fp32 shard on its way", "optimizer", 4 * shard, f"4 B x {trained:,} / {n}", H2D),)
    master = zero.master_bytes
    temporaries = round(master * optimizer.step)
    if zero.stage == 3:
        cast = 6 if master == 4 else master
        piece, width = largest_sub_group(weights, n, zero.sub_group_size), max(cast, master + temporaries)
        text = f"{width} B x {piece:,}, one sub-group"
        return (Term(_flat_gradients(run), "optimizer", width * piece, text, SUB_GROUP),)
    if zero.stage:
        return _flattened_step(run, weights, master, temporaries)
    width = max(8, 4 + temporaries) - run.compute_bytes
    return (Term("fp32 gradients", "optimizer", width * trained, f"{width} B x {trained:,}", FLATTEN),)


def _flat_gradients(run: Run) -> str:
    """What the gradients of the shard are called, in the width of its masters."""
    return "fp32 gradients" if run.zero is None or run.zero.master_bytes == 4 else "flat gradients"


def _flattened_step(run: Run, weights: Weights, master: int, temporaries: int) -> tuple[Term, ...]:
    """Stages 1 and 2: the norm in doubles by tensor; the flat copy, cast to the masters; then that and temporaries.

    The gradients' shard is counted elsewhere; once it is flattened and cast it has gone. It is one piece of memory
    (grads_in_partition), so while matrices are stepped the vectors' gradients keep all of it.
    """
    shard = widest_shard(run, weights)
    width = run.compute_bytes
    cast = (width + (0 if width == master else master)) * shard.size
    freed = 0 if all(flat_groups(weights)) else width * shard.touched
    stepping = (master + temporaries) * shard.size - freed
    scan = (11 if run.precision == "fp16" else 8) * shard.largest
    bytes_ = max(cast, stepping, scan)
    text = f"the larger of {cast:,} B to cast, {stepping:,} B more to step, {scan:,} B for the norm"
    return (Term(_flat_gradients(run), "optimizer", bytes_, text, FLATTEN),)


def sub_groups_kept(run: Run, weights: Weights) -> int:
    """Elements of one rank's sub-groups that ``offload_optimizer.ratio`` below 1 leaves on the GPU: the first ones."""
    zero = run.zero
    if zero is None or zero.stage != 3 or zero.offload_optimizer != "cpu" or zero.offload_ratio >= 1:
        return 0
    pieces = list(_sub_groups(weights.trained_shapes, run.shard_size, zero.sub_group_size))
    return sum(pieces[: int((1 - zero.offload_ratio) * len(pieces))])


def largest_sub_group(weights: Weights, ranks: int, size: int) -> int:
    """Elements of the largest sub-group: whole shards of tensors until ``size`` is reached."""
    return _sub_group_of(weights.trained_shapes, ranks, size)


@lru_cache(maxsize=8)
def _sub_group_of(trained: tuple[tuple[Shape, int], ...], ranks: int, size: int) -> int:
    """The same of shapes."""
    return max(_sub_groups(trained, ranks, size), default=0)


def _sub_groups(trained: tuple[tuple[Shape, int], ...], ranks: int, size: int) -> Iterator[int]:
    """Elements of each of one rank's sub-groups, in their order."""
    for group in groups_of(trained):
        piece = 0
        for numel in group:
            piece += -(-numel // ranks)
            if piece >= size:
                yield piece
                piece = 0
        if piece:
            yield piece


def _per_element(bytes_: int, elements: int) -> str:
    """Bytes per element, to two places."""
    return f"{bytes_ / elements:.2f}".rstrip("0").rstrip(".") if elements else "0"
