"""Gradients: how many bytes of them lie on one GPU, and when."""

from advisor.memory.ledger import Term
from advisor.memory.optimizers import optimizer_named
from advisor.memory.weight_groups import Weights
from advisor.memory.zero_shards import beyond_buckets, in_first_bucket, widest_shard
from advisor.run import Fsdp, Run, Zero

AUTOGRAD = "torch: .grad has the parameter's dtype; zero_grad(set_to_none=True) frees it after the step"
NO_SYNC = (
    "transformers/trainer.py:1758-1767@5.16.1, accelerate/accelerator.py:1164-1169@1.13.0: "
    "no_sync keeps gradients whole in all micro-steps but the last"
)
DDP = "torch/nn/parallel/distributed.py: gradient_as_bucket_view=False keeps a bucket copy of every gradient"
ZERO_1_2 = "deepspeed/runtime/zero/stage_1_and_2.py:834-841,1086-1125@0.18.9"
SHARD = "deepspeed/runtime/zero/stage_1_and_2.py:1516-1532@0.18.9: tensors at a shard's edges are copied whole"
ZERO_3 = "deepspeed/runtime/zero/stage3.py, grad_partitions_flat_buffer@0.18.9"


def gradient_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """All gradients of one micro-step, as they lie when backward ends."""
    match run.sharding:
        case Zero():
            return zero_gradients(run, weights)
        case Fsdp():
            return _whole_gradients(run, weights) if accumulates_whole(run) else _sharded_gradients(run, weights)
        case None if optimizer_named(run.optimizer).fused_backward:
            largest = weights.largest_trained
            return (Term("one gradient at a time", "gradients", 2 * largest, f"2 B x {largest:,}", AUTOGRAD),)
        case None:
            return _sharded_gradients(run, weights)


def cuts_units(run: Run) -> bool:
    """Whether FSDP cuts units and gathers them again. FSDP1 leaves a process alone; FSDP2 copies each unit there too.

    torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:392-402,437-462@2.13.0, and measured on one H100.
    """
    match run.sharding:
        case Fsdp(version=version):
            return run.world_size > 1 or version == 2
        case _:
            return False


def accumulates_whole(run: Run) -> bool:
    """Whether FSDP keeps gradients whole until the last micro-step, the only one in which the Trainer has them reduced.

    ``accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}`` reduces them each time.
    """
    return cuts_units(run) and run.gradient_accumulation_steps > 1 and not run.sync_each_batch


def _whole_gradients(run: Run, weights: Weights) -> tuple[Term, ...]:
    """Gradients of all trained weights on every rank, in the width that is computed with."""
    width, trained = run.compute_bytes, weights.trained_elements
    return (Term("gradients", "gradients", width * trained, f"{width} B x {trained:,}, whole on every rank", NO_SYNC),)


def _sharded_gradients(run: Run, weights: Weights) -> tuple[Term, ...]:
    """FSDP's shards of the gradients, which follow offloaded parameters; or one GPU's own."""
    match run.sharding:
        case Fsdp(offload_params=offloaded):
            n = run.shard_size
        case _:
            n, offloaded = 1, False
    bytes_ = 0 if offloaded else weights.trained_bytes // n
    text = f"{weights.trained_bytes:,} B of trained weights / {n}"
    return (Term("gradients", "gradients", bytes_, text, AUTOGRAD),)


def zero_gradients(run: Run, weights: Weights) -> tuple[Term, ...]:
    """Gradients under DeepSpeed when backward ends, in half precision unless accumulated in fp32."""
    if not isinstance(run.sharding, Zero):
        return ()
    zero, trained, n, width = run.sharding, weights.trained_elements, run.shard_size, run.compute_bytes
    match zero.stage:
        case 0:
            return (Term("gradients", "gradients", width * trained, f"{width} B x {trained:,}", ZERO_1_2),)
        case 1 | 2 if zero.offload_optimizer != "gpu":
            staging = width * weights.largest_trained
            text = f"{width} B x {weights.largest_trained:,}, the largest parameter; gradients leave bucket by bucket"
            return (Term("gradient staging", "gradients", staging, text, "stage_1_and_2.py:569@0.18.9"),)
        case 1 if not reduces_early(run):
            text = f"{width} B x {trained:,}, whole until the boundary"
            return (Term("gradients", "gradients", width * trained, text, ZERO_1_2),)
        case 1:
            beyond = beyond_buckets(run, weights)
            text = f"and {width} B x {beyond:,} of tensors that no bucket takes" if beyond else ""
            return (
                *_gradient_shard(run, weights),
                Term("large gradients", "gradients", width * beyond, text, ZERO_1_2),
            )
        case 2:
            return _gradient_shard(run, weights, copies=2 if run.gradient_accumulation_steps > 1 else 1)
        case 3 if zero.offload_optimizer != "gpu":
            return ()
        case 3:
            width = 4 if zero.fp32_gradient_accumulation else width
            text = f"{width} B x {trained:,} / {n}"
            return (Term("gradient shard", "gradients", width * trained // n, text, ZERO_3),)


def reduces_early(run: Run) -> bool:
    """Whether gradients are reduced as they come: by stage 2, and by stage 1 with overlap in its only micro-step."""
    match run.sharding:
        case Zero(stage=1, overlap_comm=overlaps):
            return overlaps and run.gradient_accumulation_steps == 1
        case Zero(stage=2):
            return True
        case _:
            return False


def _gradient_shard(run: Run, weights: Weights, copies: int = 1) -> tuple[Term, ...]:
    """One rank's gradients in stages 1 and 2: every tensor whole of which a part is its own."""
    width, touched = run.compute_bytes, widest_shard(run, weights).touched
    text = f"{width} B x {touched:,} of the tensors that the widest of {run.shard_size} shards touches"
    text += " x 2, accumulated and new" if copies == 2 else ""
    return (Term("gradient shard", "gradients", copies * width * touched, text, SHARD),)


def reduction_terms(run: Run, weights: Weights) -> tuple[Term, ...]:
    """Stage 1 at the boundary: the new shard and all gradients, less what the first bucket has taken."""
    width, trained = run.compute_bytes, weights.trained_elements
    touched, taken = widest_shard(run, weights).touched, in_first_bucket(run, weights)
    elements = max(trained, trained - taken + touched)
    text = f"{width} B x ({trained:,} - {taken:,} in the bucket + {touched:,} of the shard)"
    return (Term("gradients and their shard", "gradients", width * elements, text, SHARD),)


def step_gradients(run: Run, weights: Weights) -> tuple[Term, ...]:
    """The gradients that are left when the optimizer's step begins."""
    match run.sharding:
        case Fsdp() if accumulates_whole(run):
            return _sharded_gradients(run, weights)
        case Zero(stage=1 | 2, offload_optimizer="gpu"):
            return _gradient_shard(run, weights)
        case _:
            return gradient_terms(run, weights)


def between_micro_steps(run: Run, weights: Weights) -> tuple[Term, ...]:
    """What of the gradients is there during forward: the accumulated ones, and buffers that are never freed."""
    accumulates = run.gradient_accumulation_steps > 1
    match run.sharding:
        case Zero(stage=2, offload_optimizer="gpu"):
            return _gradient_shard(run, weights) if accumulates else ()
        case Zero(stage=3) | Zero(offload_optimizer="cpu" | "nvme"):  # their buffers are never freed
            return gradient_terms(run, weights)
        case _:
            return gradient_terms(run, weights) if accumulates else ()


def bucket_copies(run: Run, weights: Weights) -> tuple[Term, ...]:
    """DDP's reducer keeps every gradient a second time, for as long as the model lives."""
    if run.world_size == 1 or run.sharding is not None:
        return ()
    text = f"{weights.trained_bytes:,} B of trained weights"
    return (Term("DDP buckets", "gradients", weights.trained_bytes, text, DDP),)
