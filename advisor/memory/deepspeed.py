"""What DeepSpeed holds in addition to its shards: reduce buckets, gathered parameters, persistent ones."""

from math import prod

from advisor.memory.activations.lora_kernels import MLP, fused
from advisor.memory.fsdp import Moment, gathered_units
from advisor.memory.gradients import cuts_units
from advisor.memory.ledger import Term
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture, Block, WeightShape
from advisor.run import Fsdp, Run, Zero

BUCKETS = "deepspeed/runtime/zero/stage_1_and_2.py:2302-2323@0.18.9; sizes confirmed in DeepSpeed issue 1302"
SECONDARY = "deepspeed/runtime/zero/partition_parameters.py:1779-1824@0.18.9: made again once a weight was gathered"
FLAT_COPY = "deepspeed/runtime/zero/stage_1_and_2.py, allreduce_bucket@0.18.9: the bucket is flattened once more"
STAGE_3_BUCKET = "deepspeed/runtime/zero/stage3.py:779-784@0.18.9"
LIVE = "deepspeed/runtime/zero/partitioned_param_coordinator.py:427-452, partition_parameters.py:313,771@0.18.9"
PERSISTENT = "deepspeed/runtime/zero/parameter_offload.py:264-282, partition_parameters.py:1657-1768@0.18.9"
OVERFLOW = "deepspeed/runtime/zero/stage_1_and_2.py, _has_inf_or_nan@0.18.9: 4 + 1 + 1 + 1 + 4 B an element"
NO_ZERO_INIT = "torch F.linear saves a view of the gathered weight; DeepSpeed patches it inside zero.Init alone"


def bucket_terms(run: Run) -> tuple[Term, ...]:
    """DeepSpeed's reduce buckets, in half precision: of a size that no model or adapter changes."""
    width = run.compute_bytes
    match run.sharding:
        case Zero(stage=3, reduce_bucket_size=size):
            return (Term("reduce bucket", "overhead", width * size, f"{width} B x {size:,} elements", STAGE_3_BUCKET),)
        case Zero(stage=1 | 2, reduce_bucket_size=size) as zero:
            buffers = (2 if zero.overlap_comm else 1) if zero.contiguous_gradients else 0
            text = f"{width} B x {size:,} x {buffers}"
            return (Term("reduce buckets", "overhead", width * size * buffers, text, BUCKETS),)
        case _:
            return ()


def secondary_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """hpZ's second partition of every weight, over a node or less; with offloaded parameters it lies on the host."""
    match run.sharding:
        case Zero(stage=3, secondary_partition_size=size, offload_params="gpu") if size > 1 and run.shard_size > 1:
            bytes_, text = second_partition(run, weights, size)
            return (Term("second partition", "weights", bytes_, text, SECONDARY),)
        case _:
            return ()


def second_partition(run: Run, weights: Weights, size: int) -> tuple[int, str]:
    """Bytes that a rank keeps of it, wherever it lies, and how they come about: each weight's in its own dtype."""
    width, ranks = run.compute_bytes, min(size, run.shard_size)
    text = f"({width} B x {weights.trained_elements:,} + {weights.frozen_bytes:,} B) / {ranks}"
    return (width * weights.trained_elements + weights.frozen_bytes) // ranks, text


def flattened_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """The bucket once more, while stages 1 and 2 reduce it."""
    match run.sharding:
        case Zero(stage=1 | 2, offload_optimizer="gpu", reduce_bucket_size=size) if run.world_size > 1:
            copied, width = min(size, weights.trained_elements), run.compute_bytes
            return (Term("flattened bucket", "overhead", width * copied, f"{width} B x {copied:,}", FLAT_COPY),)
        case _:
            return ()


def lasting_buckets(run: Run) -> tuple[Term, ...]:
    """The buckets that are there in forward: stage 3's always, stage 1's from one micro-step to the next."""
    match run.zero_stage:
        case 3:
            return bucket_terms(run)
        case 1 if run.gradient_accumulation_steps > 1:
            return bucket_terms(run)
        case _:
            return ()


def buckets_at_loss(run: Run) -> tuple[Term, ...]:
    """The buckets when backward starts: until DeepSpeed 0.18.3 they were made before it, then by the first gradient."""
    return lasting_buckets(run) if run.stack.at_least("deepspeed", "0.18.3") else bucket_terms(run)


def overflow_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """The scan for inf and nan as gradients leave for the host.

    11 B an element of the largest, until DeepSpeed 0.19.
    """
    match run.sharding:
        case Zero(stage=1 | 2, offload_optimizer="cpu" | "nvme") if not run.stack.at_least("deepspeed", "0.19.0"):
            largest = weights.largest_trained
            gradient = Term("largest gradient", "gradients", 2 * largest, f"2 B x {largest:,}", OVERFLOW)
            return (gradient, Term("overflow check", "overhead", 11 * largest, f"11 B x {largest:,}", OVERFLOW))
        case _:
            return ()


def gathered_terms(run: Run, model: Architecture, weights: Weights, moment: Moment) -> tuple[Term, ...]:
    """Parameters that are gathered from all ranks at a moment."""
    match run.sharding:
        case Fsdp() if cuts_units(run):
            return gathered_units(run, model, moment)
        case Zero(stage=3) if gathers(run) and moment != "end of backward":
            at_head = moment in {"end of forward", "start of backward"}
            return (*persistent_terms(run, model, weights), *live_terms(run, model, head_only=at_head))
        case _:
            return ()


def gathers(run: Run) -> bool:
    """Whether ZeRO-3 makes weights whole on the GPU for their use: from other ranks, or from the host.

    On one rank ``NoGatherHandle`` copies from wherever the weight is; on the GPU that is the weight itself
    (deepspeed/runtime/zero/partition_parameters.py:58-72,1449-1450@0.18.9).
    """
    return run.zero is not None and run.zero.stage == 3 and (run.shard_size > 1 or run.zero.offload_params != "gpu")


def live_terms(run: Run, model: Architecture, *, head_only: bool) -> tuple[Term, ...]:
    """ZeRO-3's live parameters: the module at work, and what is prefetched or kept for reuse.

    Twice: DeepSpeed holds one set, and what it has freed stays with the allocator until the compute stream has passed
    it (``record_stream``); how much of that there is at once was measured, not derived.
    """
    if not isinstance(run.sharding, Zero):
        return ()
    zero, width = run.sharding, run.compute_bytes
    kept = min(max(zero.max_live_parameters, zero.max_reuse_distance), model.parameters)
    module = embedding_elements(model) if head_only else max(largest_module(model), _largest_kernel(run, model))
    at_work = Term("gathered module", "overhead", width * module, f"{width} B x {module:,}", LIVE)
    if head_only and not run.activation_checkpointing and not run.stack.zero_init:
        return (at_work,)  # retained_terms has them
    elements = max(0, min(2 * kept, model.parameters + zero.prefetch_bucket_size - module))
    text = f"{width} B x {elements:,}: 2 x {kept:,}, or the rest of the model and a bucket on its way"
    live = Term("live parameters", "overhead", width * elements, text, LIVE)
    return (at_work, live) if elements else (at_work,)


def retained_terms(run: Run, model: Architecture) -> tuple[Term, ...]:
    """Without ``zero.Init`` autograd keeps every gathered weight until its backward, unless layers are checkpointed."""
    if not gathers(run) or run.activation_checkpointing:
        return ()
    if run.stack.zero_init or run.adapter is not None:
        return ()
    elements = model.parameters - model.by_kind.get("embedding", 0)
    return (Term("gathered weights kept", "overhead", 2 * elements, f"2 B x {elements:,}", NO_ZERO_INIT),)


def persistent_terms(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """Parameters too small to be worth sharding, adapters among them: whole on every rank, as well as sharded."""
    if not isinstance(run.sharding, Zero):
        return ()
    threshold, width = run.sharding.param_persistence_threshold, run.compute_bytes
    tensors = [(tensor.numel, tensor.elements) for tensor in model.tensors]
    if run.lora is not None:
        tensors += [(prod(shape), prod(shape) * count) for shape, count in weights.trained_shapes]
    small = sum(elements for numel, elements in tensors if numel <= threshold)
    text = f"{width} B x {small:,} below the threshold"
    return (Term("persistent parameters", "overhead", width * small, text, PERSISTENT),)


def embedding_elements(model: Architecture) -> int:
    """Elements of the head, or of the embedding that it is tied to."""
    return model.vocab_size * model.hidden_size


def largest_module(model: Architecture) -> int:
    """Elements of what ZeRO-3 gathers at once: one linear layer, or the experts of a layer, which are one leaf."""
    inner: list[WeightShape] = [tensor for tensor in model.tensors if tensor.kind not in {"embedding", "head"}]
    largest = max((tensor.numel for tensor in inner), default=0)
    experts = max((_expert_elements(block, model) for block in model.blocks), default=0)
    return max(largest, experts)


def _largest_kernel(run: Run, model: Architecture) -> int:
    """Elements of the weights that axolotl's fused MLP reads, which ZeRO-3 gathers with the MLP: external parameters.

    deepspeed/runtime/zero/parameter_offload.py:57-71@0.18.9.
    """
    mlps = [[x for x in block.linears if x.name in MLP and x.name in fused(run, block)] for block in model.blocks]
    return max((sum(x.n_in * x.n_out for x in linears) for linears in mlps), default=0)


def _expert_elements(block: Block, model: Architecture) -> int:
    """Elements of one layer's routed experts."""
    if block.mlp is None or not block.mlp.experts:
        return 0
    layers = sum(other.count for other in model.blocks if other.mlp is not None and other.mlp.experts)
    return model.by_kind.get("experts", 0) // max(1, layers)
